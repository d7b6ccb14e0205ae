#pragma once

// Frames between the runner and a language worker (docs/runner.md).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/base/result.h"

namespace sless::runner {

inline constexpr size_t kMaxFrame = 32 * 1024 * 1024;  ///< bytes of head and payload together

struct Frame {
  std::string head;     ///< one JSON object
  std::string payload;  ///< JSON text, or empty
};

std::string EncodeFrame(std::string_view head, std::string_view payload);

/// Cuts a byte stream into frames. Not thread-safe.
class FrameReader {
 public:
  void Feed(std::string_view bytes) { buffer_.append(bytes); }
  /// The next whole frame, nullopt if there is none yet. Error: kInvalidArgument, a frame above
  /// kMaxFrame: the stream is broken.
  base::Result<std::optional<Frame>> Next();

 private:
  std::string buffer_;
  size_t begin_ = 0;
};

}  // namespace sless::runner
