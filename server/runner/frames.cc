#include "server/runner/frames.h"

#include <fmt/format.h>

namespace sless::runner {
namespace {

void AppendLength(std::string& out, size_t length) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(length >> shift & 0xff);
}

size_t ReadLength(std::string_view bytes) {
  size_t length = 0;
  for (int i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(bytes[i]);
  return length;
}

}  // namespace

std::string EncodeFrame(std::string_view head, std::string_view payload) {
  std::string out;
  out.reserve(8 + head.size() + payload.size());
  AppendLength(out, head.size());
  AppendLength(out, payload.size());
  out.append(head).append(payload);
  return out;
}

base::Result<std::optional<Frame>> FrameReader::Next() {
  const std::string_view have = std::string_view(buffer_).substr(begin_);
  if (have.size() < 8) return std::optional<Frame>();
  const size_t head = ReadLength(have), payload = ReadLength(have.substr(4));
  if (head + payload > kMaxFrame) {
    return base::Err(
        base::Code::kInvalidArgument,
        fmt::format("a frame of {} bytes, at most {} are allowed", head + payload, kMaxFrame));
  }
  if (have.size() < 8 + head + payload) return std::optional<Frame>();
  Frame frame{std::string(have.substr(8, head)), std::string(have.substr(8 + head, payload))};
  begin_ += 8 + head + payload;
  // Moving the rest to the front each time would cost the square of a burst of small frames.
  if (begin_ == buffer_.size()) {
    buffer_.clear();
    begin_ = 0;
  } else if (begin_ > 1024 * 1024) {
    buffer_.erase(0, begin_);
    begin_ = 0;
  }
  return std::optional<Frame>(std::move(frame));
}

}  // namespace sless::runner
