#pragma once

#include <mutex>
#include <utility>

namespace sless::base {

/// A value and its lock as one object: there is no way to reach the value without the lock.
template <class T>
class Guarded {
 public:
  Guarded() = default;
  explicit Guarded(T value) : value_(std::move(value)) {}

  /// Calls f(value) under the lock. Do not call out of your room from f.
  template <class F>
  decltype(auto) With(F&& f) {
    std::lock_guard lock(mutex_);
    return std::forward<F>(f)(value_);
  }
  template <class F>
  decltype(auto) With(F&& f) const {
    std::lock_guard lock(mutex_);
    return std::forward<F>(f)(value_);
  }

 private:
  mutable std::mutex mutex_;
  T value_{};
};

}  // namespace sless::base
