#pragma once

// Injected time: wall clock for facts that people see, steady clock for waits.

#include <algorithm>
#include <chrono>
#include <string>

#include "client/base/result.h"

namespace sless::base {

using TimePoint = std::chrono::system_clock::time_point;
using SteadyPoint = std::chrono::steady_clock::time_point;

/// Thread safety: all methods may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
  virtual SteadyPoint Steady() const = 0;
};

/// The machine's clocks.
class SystemClock final : public Clock {
 public:
  TimePoint Now() const override { return std::chrono::system_clock::now(); }
  SteadyPoint Steady() const override { return std::chrono::steady_clock::now(); }
};

/// An absolute point of the steady clock by which something must have ended.
struct Deadline {
  SteadyPoint at = SteadyPoint::max();

  static Deadline Never() { return {}; }
  static Deadline After(const Clock& clock, std::chrono::nanoseconds wait) {
    return {clock.Steady() + std::chrono::duration_cast<SteadyPoint::duration>(wait)};
  }
  bool Passed(const Clock& clock) const { return clock.Steady() >= at; }
  /// Time left, never negative.
  std::chrono::milliseconds Left(const Clock& clock) const {
    const auto now = clock.Steady();
    if (now >= at) return std::chrono::milliseconds(0);
    return std::chrono::duration_cast<std::chrono::milliseconds>(at - now);
  }
};

/// "2026-01-02T03:04:05.678Z": RFC 3339, UTC, milliseconds.
std::string FormatTime(TimePoint time);
/// Reads RFC 3339 with 0 to 9 fraction digits and "Z" or an offset, years 1678 to 2261. Error:
/// kInvalidArgument.
Result<TimePoint> ParseTime(std::string_view text);

}  // namespace sless::base
