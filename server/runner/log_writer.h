#pragma once

// The function's log: one JSON line each on the runner's stdout (docs/runner.md).

#include <string>
#include <string_view>

#include "client/base/clock.h"

namespace sless::runner {

inline constexpr size_t kMaxLine = 16 * 1024;

/// Not thread-safe.
class LogWriter {
 public:
  LogWriter(int fd, const base::Clock& clock) : fd_(fd), clock_(clock) {}
  /// `stream` is stdout, stderr or system. Held until Flush, or 64 KiB.
  void Write(std::string_view stream, std::string_view request_id, std::string_view line);
  /// Blocks until the reader took it: a function that prints more than the server can keep up with
  /// waits. A reader that has gone is no error, the runner ends soon.
  void Flush();

 private:
  int fd_;
  const base::Clock& clock_;
  std::string pending_;
};

/// Cuts a byte stream into lines of at most kMaxLine bytes.
class LineSplitter {
 public:
  template <class OnLine>
  void Feed(std::string_view bytes, OnLine&& on_line) {
    for (const char c : bytes) {
      if (c != '\n') partial_ += c;
      if (c == '\n' || partial_.size() >= kMaxLine) {
        on_line(std::string_view(partial_));
        partial_.clear();
      }
    }
  }
  template <class OnLine>
  void End(OnLine&& on_line) {
    if (!partial_.empty()) on_line(std::string_view(partial_));
    partial_.clear();
  }

 private:
  std::string partial_;
};

}  // namespace sless::runner
