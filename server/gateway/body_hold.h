#pragma once

#include <atomic>
#include <memory>

#include "server/gateway/pool.h"

namespace sless::gateway {

/// What the body of one call takes of the room for all bodies and for those of its function. Given
/// back at its end. Not thread-safe; several at once are.
class BodyHold {
 public:
  /// `all` outlives it.
  BodyHold(std::atomic<size_t>& all, std::shared_ptr<FunctionState> function)
      : all_(all), function_(std::move(function)) {}
  BodyHold(const BodyHold&) = delete;
  BodyHold& operator=(const BodyHold&) = delete;
  ~BodyHold() { Release(); }

  void Add(size_t bytes) {
    held_ += bytes;
    all_ += bytes;
    function_->buffered += bytes;
  }
  void Release() {
    all_ -= held_;
    function_->buffered -= held_;
    held_ = 0;
  }
  size_t OfAll() const { return all_; }
  size_t OfFunction() const { return function_->buffered; }

 private:
  std::atomic<size_t>& all_;
  std::shared_ptr<FunctionState> function_;
  size_t held_ = 0;
};

}  // namespace sless::gateway
