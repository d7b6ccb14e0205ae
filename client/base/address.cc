#include "client/base/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "client/base/strings.h"

namespace sless::base {
namespace {

constexpr std::array<uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr int kMappedBits = 96;

/// The same bytes with all after the first `bits` cleared.
std::array<uint8_t, 16> Masked(std::array<uint8_t, 16> bytes, int bits) {
  for (int i = 0; i < 16; ++i) {
    const int left = std::clamp(bits - i * 8, 0, 8);
    bytes[static_cast<size_t>(i)] &= static_cast<uint8_t>(0xff00 >> left);
  }
  return bytes;
}

}  // namespace

Result<IpAddress> IpAddress::Parse(std::string_view text) {
  IpAddress address;
  const std::string copy(text.substr(0, 64));
  // The C functions would stop at a NUL.
  const bool whole = copy.size() == text.size() && !base::Contains(copy, '\0');
  if (whole && inet_pton(AF_INET, copy.c_str(), address.bytes_.data()) == 1) {
    address.v4_ = true;
    return address;
  }
  if (!whole || inet_pton(AF_INET6, copy.c_str(), address.bytes_.data()) != 1) {
    return Err(Code::kInvalidArgument, fmt::format("\"{}\" is no IP address", Truncate(text, 64)));
  }
  if (std::equal(kMapped.begin(), kMapped.end(), address.bytes_.begin())) {
    std::copy(address.bytes_.begin() + 12, address.bytes_.end(), address.bytes_.begin());
    std::fill(address.bytes_.begin() + 4, address.bytes_.end(), 0);
    address.v4_ = true;
  }
  return address;
}

std::string IpAddress::ToString() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(v4_ ? AF_INET : AF_INET6, bytes_.data(), text.data(), text.size());
}

Result<AddressSet::Block> AddressSet::ParseBlock(std::string_view entry) {
  const auto slash = entry.find('/');
  const auto text = entry.substr(0, slash);
  Block block;
  ASSIGN_OR_RETURN(block.first, IpAddress::Parse(text));
  const int most = block.first.v4_ ? 32 : 128;
  block.bits = most;
  if (slash == std::string_view::npos) return block;

  const bool mapped = block.first.v4_ && base::Contains(text, ':');
  const int before = mapped ? kMappedBits : 0;  // bits that are written but not ours
  const auto digits = entry.substr(slash + 1);
  const auto* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, block.bits);
  block.bits -= before;
  if (error != std::errc() || stop != end || block.bits < 0 || block.bits > most) {
    return Err(Code::kInvalidArgument,
               fmt::format("\"{}\": want a number from {} to {} after the slash",
                           Truncate(entry, 80), before, before + most));
  }
  IpAddress first = block.first;
  first.bytes_ = Masked(first.bytes_, block.bits);
  if (first != block.first) {
    return Err(
        Code::kInvalidArgument,
        fmt::format("\"{}\" has bits beyond its prefix: write {}/{} for the block, or {} for "
                    "the address",
                    Truncate(entry, 80), first.ToString(), block.bits, block.first.ToString()));
  }
  return block;
}

Result<AddressSet> AddressSet::Parse(std::string_view text) {
  AddressSet set;
  if (Trim(text).empty()) return set;
  for (const auto& entry : Split(text, ',')) {
    ASSIGN_OR_RETURN(set.blocks_.emplace_back(), ParseBlock(Trim(entry)));
  }
  return set;
}

std::string AddressSet::ToString() const {
  std::vector<std::string> texts;
  for (const auto& block : blocks_) {
    const bool single = block.bits == (block.first.v4_ ? 32 : 128);
    texts.push_back(block.first.ToString() + (single ? "" : fmt::format("/{}", block.bits)));
  }
  return Join(texts, ", ");
}

bool AddressSet::Contains(const IpAddress& address) const {
  return std::any_of(blocks_.begin(), blocks_.end(), [&](const Block& block) {
    return block.first.v4_ == address.v4_ &&
           Masked(address.bytes_, block.bits) == block.first.bytes_;
  });
}

}  // namespace sless::base
