#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <memory>

#include "server/http/stream.h"

namespace sless::http {

/// Wakes one coroutine from any thread. A Set before the wait is not lost; each wait takes all Sets
/// before it.
class Signal : public std::enable_shared_from_this<Signal> {
 public:
  /// `executor`: of the I/O thread that the waiting coroutine runs on.
  explicit Signal(boost::asio::any_io_executor executor) : timer_(executor) {}

  /// From any thread.
  void Set() {
    boost::asio::post(timer_.get_executor(), [self = shared_from_this()] {
      self->set_ = true;
      self->timer_.cancel();
    });
  }

  /// From the coroutine only. True if set, false where `until` came first.
  Task<bool> Wait(
      std::chrono::steady_clock::time_point until = std::chrono::steady_clock::time_point::max()) {
    if (!set_) {
      timer_.expires_at(until);
      co_await timer_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
    co_return std::exchange(set_, false);
  }

 private:
  boost::asio::steady_timer timer_;
  bool set_ = false;
};

}  // namespace sless::http
