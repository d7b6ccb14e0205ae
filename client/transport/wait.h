#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "client/base/clock.h"
#include "client/base/result.h"

namespace sless::transport {

/// Waits for file descriptors until a deadline or a stop, whichever is first. One per Send; not
/// thread-safe.
class Wait {
 public:
  /// `peer` is named in the errors.
  Wait(std::string peer, base::Deadline deadline, std::stop_token stop);
  ~Wait();
  Wait(const Wait&) = delete;

  /// Waits until `fd` has one of `events` (POLLIN, POLLOUT; errors and hang-ups count as both) and
  /// returns what it has. `doing` ends the error's sentence: "timed out after 2.0 s while
  /// connecting". Errors: kDeadlineExceeded, kCancelled.
  base::Result<short> For(int fd, short events, std::string_view doing);
  /// As For, but gives 0 at `earlier`, if that comes before the deadline.
  base::Result<short> For(int fd, short events, std::string_view doing, base::Deadline earlier);

  const base::Deadline& deadline() const { return deadline_; }
  const base::Clock& clock() const { return clock_; }
  /// An error that starts with the peer.
  tl::unexpected<base::Error> Fail(base::Code code, std::string_view what) const;

 private:
  struct Waker {
    int fd;
    void operator()() const noexcept;
  };
  base::SystemClock clock_;
  std::string peer_;
  base::Deadline deadline_;
  base::SteadyPoint started_;
  std::stop_token stop_;
  int wake_fd_ = -1;
  std::optional<std::stop_callback<Waker>> callback_;
};

}  // namespace sless::transport
