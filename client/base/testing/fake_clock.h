#pragma once

#include <atomic>

#include "client/base/clock.h"

namespace sless::base {

/// A clock that stands still until told to move.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(TimePoint now = TimePoint(std::chrono::seconds(1767225600))) : start_(now) {}
  TimePoint Now() const override { return start_ + std::chrono::nanoseconds(passed_.load()); }
  SteadyPoint Steady() const override {
    return SteadyPoint(std::chrono::nanoseconds(passed_.load()));
  }
  void Advance(std::chrono::nanoseconds by) { passed_ += by.count(); }

 private:
  TimePoint start_;
  std::atomic<int64_t> passed_{1'000'000'000};
};

}  // namespace sless::base
