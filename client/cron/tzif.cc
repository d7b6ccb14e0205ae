// Zone files: RFC 8536.

#include <fmt/format.h>

#include "client/cron/zone_data.h"

namespace sless::cron {
namespace {

using base::Code;
using base::Err;

constexpr size_t kHeader = 44;
constexpr uint32_t kMaxTransitions = 20'000;
constexpr uint32_t kMaxTypes = 256;  // an index is one byte
// RFC 8536 recommends -25 h to 26 h; anything further is no time zone.
constexpr int64_t kMaxOffset = 26 * 3600;

tl::unexpected<base::Error> Broken(std::string_view what) {
  return Err(Code::kInvalidArgument, std::string(what));
}

// Big-endian numbers out of a text whose bounds were checked before.
int64_t ReadNumber(std::string_view bytes, size_t at, size_t size) {
  uint64_t value = size == 4 && (static_cast<unsigned char>(bytes[at]) & 0x80) ? ~uint64_t{0} : 0;
  for (size_t i = 0; i < size; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return static_cast<int64_t>(value);
}

struct Block {
  uint32_t utc_flags, wall_flags, leaps, transitions, types, chars;
  size_t time_size;  // 4 in the first block, 8 in the second
  size_t Size() const {
    return size_t{transitions} * (time_size + 1) + size_t{types} * 6 + chars +
           size_t{leaps} * (time_size + 4) + wall_flags + utc_flags;
  }
};

base::Result<Block> ReadHeader(std::string_view bytes, size_t time_size) {
  if (bytes.size() < kHeader || bytes.substr(0, 4) != "TZif")
    return Broken("it does not begin like a zone file");
  const auto count = [&](size_t i) {
    return static_cast<uint32_t>(ReadNumber(bytes, 20 + 4 * i, 4));
  };
  const Block block{count(0), count(1), count(2), count(3), count(4), count(5), time_size};
  if (block.transitions > kMaxTransitions || block.types == 0 || block.types > kMaxTypes ||
      block.leaps > kMaxTransitions || block.chars > 100'000 || block.wall_flags > kMaxTypes ||
      block.utc_flags > kMaxTypes) {
    return Broken("its header has impossible counts");
  }
  if (bytes.size() - kHeader < block.Size()) return Broken("it is cut off");
  return block;
}

base::Result<ZoneData> ReadBlock(std::string_view bytes, const Block& block) {
  const size_t times = kHeader, indexes = times + size_t{block.transitions} * block.time_size,
               types = indexes + block.transitions;
  if (block.leaps != 0) return Broken("it counts leap seconds");
  std::vector<int64_t> offsets;
  for (uint32_t i = 0; i < block.types; ++i) {
    offsets.push_back(ReadNumber(bytes, types + 6 * i, 4));
    if (offsets.back() < -kMaxOffset || offsets.back() > kMaxOffset)
      return Broken("an offset is longer than a day");
  }
  ZoneData data;
  data.first_offset_sec = offsets[0];
  for (uint32_t i = 0; i < block.transitions; ++i) {
    const int64_t at = ReadNumber(bytes, times + block.time_size * i, block.time_size);
    const auto index = static_cast<unsigned char>(bytes[indexes + i]);
    if (index >= offsets.size()) return Broken("a transition names a type that is not there");
    if (!data.transitions.empty() && at <= data.transitions.back().at)
      return Broken("its transitions do not rise");
    data.transitions.push_back({at, offsets[index]});
  }
  return data;
}

}  // namespace

base::Result<ZoneData> ReadTzif(std::string_view bytes) {
  ASSIGN_OR_RETURN(const Block first, ReadHeader(bytes, 4));
  const char version = bytes[4];
  if (version == '\0') return ReadBlock(bytes, first);
  if (version < '2' || version > '4') return Broken("its version is not known");

  bytes.remove_prefix(kHeader + first.Size());
  ASSIGN_OR_RETURN(const Block second, ReadHeader(bytes, 8));
  ASSIGN_OR_RETURN(auto data, ReadBlock(bytes, second));
  bytes.remove_prefix(kHeader + second.Size());
  const size_t end =
      bytes.empty() || bytes[0] != '\n' ? std::string_view::npos : bytes.find('\n', 1);
  if (end == std::string_view::npos) return Broken("its footer is cut off");
  const auto footer = bytes.substr(1, end - 1);
  if (!footer.empty()) {
    ASSIGN_OR_RETURN(data.rule, ParsePosixRule(footer));
  }
  return data;
}

}  // namespace sless::cron
