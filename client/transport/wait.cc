#include "client/transport/wait.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace sless::transport {

using base::Code;
using base::Err;

void Wait::Waker::operator()() const noexcept {
  const uint64_t one = 1;
  [[maybe_unused]] const auto n = write(fd, &one, sizeof one);
}

Wait::Wait(std::string peer, base::Deadline deadline, std::stop_token stop)
    : peer_(std::move(peer)),
      deadline_(deadline),
      started_(clock_.Steady()),
      stop_(std::move(stop)) {
  if (!stop_.stop_possible()) return;
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (wake_fd_ >= 0) callback_.emplace(stop_, Waker{wake_fd_});
}

Wait::~Wait() {
  callback_.reset();  // before its file descriptor may belong to somebody else
  if (wake_fd_ >= 0) close(wake_fd_);
}

tl::unexpected<base::Error> Wait::Fail(Code code, std::string_view what) const {
  return Err(code, fmt::format("{}: {}", peer_, what));
}

base::Result<short> Wait::For(int fd, short events, std::string_view doing) {
  return For(fd, events, doing, base::Deadline::Never());
}

base::Result<short> Wait::For(int fd, short events, std::string_view doing,
                              base::Deadline earlier) {
  for (;;) {
    if (stop_.stop_requested())
      return Fail(Code::kCancelled, fmt::format("stopped while {}", doing));
    if (deadline_.Passed(clock_)) {
      const std::chrono::duration<double> took = clock_.Steady() - started_;
      return Fail(Code::kDeadlineExceeded,
                  fmt::format("timed out after {:.1f} s while {}", took.count(), doing));
    }
    if (earlier.Passed(clock_)) return short{0};
    pollfd fds[2] = {{fd, events, 0}, {wake_fd_, POLLIN, 0}};
    const auto left = std::min(deadline_.Left(clock_), earlier.Left(clock_));
    // Without a wake-up descriptor (none left in this process) the stop token is looked at in short
    // steps.
    const int64_t longest = wake_fd_ < 0 && stop_.stop_possible() ? 20 : 60'000;
    const int ms = static_cast<int>(std::min<int64_t>(left.count() + 1, longest));
    const int n = poll(fds, wake_fd_ >= 0 ? 2 : 1, ms);
    if (n < 0 && errno != EINTR)
      return Fail(Code::kInternal, fmt::format("poll failed while {}", doing));
    if (n > 0 && fds[0].revents != 0) {
      return fds[0].revents & (POLLERR | POLLHUP | POLLNVAL)
                 ? static_cast<short>(fds[0].revents | events)
                 : fds[0].revents;
    }
  }
}

}  // namespace sless::transport
