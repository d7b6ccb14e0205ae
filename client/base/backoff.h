#pragma once

#include <chrono>

namespace sless::base {

/// Exponential waits with jitter: wait n is random in [first * 2^n / 2, first * 2^n], at most
/// `max`. Not thread-safe: one per retry loop.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds max)
      : next_(first), max_(max) {}
  /// The next wait.
  std::chrono::milliseconds Next();

 private:
  std::chrono::milliseconds next_;
  std::chrono::milliseconds max_;
};

}  // namespace sless::base
