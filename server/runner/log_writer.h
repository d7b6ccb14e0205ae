#pragma once

// The function's log: one JSON line each on the runner's stdout (docs/runner.md).

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/base/clock.h"

namespace sless::runner {

inline constexpr size_t kMaxLine = 16 * 1024;
inline constexpr size_t kMostPending = 256 * 1024;
inline constexpr auto kLogPatience = std::chrono::seconds(3);

/// A reader that is more than kMostPending behind is waited for: whoever can stop writing does.
/// Once it takes less than that within kLogPatience, lines are dropped and counted until it has all
/// there is, so that nobody waits for a log that is not taken. Not thread-safe.
class LogWriter {
 public:
  /// Makes `fd` non-blocking.
  LogWriter(int fd, const base::Clock& clock);
  /// `stream` is stdout, stderr or system. Held until Flush.
  void Write(std::string_view stream, std::string_view request_id, std::string_view line);
  /// Writes what the reader takes now and, once it has caught up, how many lines were dropped; does
  /// not block. A reader that has gone is no error, the runner ends soon.
  void Flush();
  /// Waits for the reader, at most so long.
  void FlushAll(std::chrono::milliseconds most);
  /// Nothing waits for the reader.
  bool empty() const { return pending_.empty(); }
  /// Until when nothing should be written, as the reader is behind; none where it is not, or is not
  /// waited for any more.
  std::optional<base::SteadyPoint> WaitsUntil() const;

 private:
  void Put(std::string_view stream, std::string_view request_id, std::string_view line);
  /// How much the reader took.
  size_t Send();

  int fd_;
  const base::Clock& clock_;
  std::string pending_;
  // From more than kMostPending on until there is nothing.
  struct Behindhand {
    base::SteadyPoint since;
    size_t taken = 0;  // then; begins anew with each kMostPending
  };
  std::optional<Behindhand> behind_;
  int64_t dropped_ = 0;  // lines since it was given up
};

/// Cuts a byte stream into lines of at most kMaxLine bytes, not within a character of UTF-8.
class LineSplitter {
 public:
  template <class OnLine>
  void Feed(std::string_view bytes, OnLine&& on_line) {
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      const size_t length = byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
      if (c == '\n' || partial_.size() + length > kMaxLine) {
        on_line(std::string_view(partial_));
        partial_.clear();
      }
      if (c != '\n') partial_ += c;
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
