#include "provider/plugin/process_events.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace sless::plugin {

base::Result<std::unique_ptr<ProcessEvents>> ProcessEvents::Make(Options options) {
  std::unique_ptr<ProcessEvents> events(new ProcessEvents);
  events->watch_host_ = options.watch_host;
  events->host_pid_ = getppid();

  // A host that dies closes our stderr: a log line must not kill a running change.
  signal(SIGPIPE, SIG_IGN);
  sigset_t taken;
  sigemptyset(&taken);
  sigaddset(&taken, SIGTERM);
  if (options.end_on_interrupt) {
    sigaddset(&taken, SIGINT);
  } else {
    // Ctrl-C reaches the whole process group; the host then tells us by StopProvider what it wants.
    signal(SIGINT, SIG_IGN);
  }
  if (const int error = pthread_sigmask(SIG_BLOCK, &taken, nullptr); error != 0) {
    return base::Err(base::Code::kInternal,
                     fmt::format("cannot block signals: {}", std::strerror(error)));
  }
  events->signal_fd_ = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
  events->request_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (events->signal_fd_ < 0 || events->request_fd_ < 0) {
    return base::Err(base::Code::kInternal,
                     fmt::format("cannot wait for signals: {}", std::strerror(errno)));
  }
  if (options.watch_host) {
    // pidfd_open sets close-on-exec by itself. Not prctl(PR_SET_PDEATHSIG): that fires when the
    // thread ends that started us, which a Go host may do at any time.
    events->host_fd_ = static_cast<int>(syscall(SYS_pidfd_open, events->host_pid_, 0));
  }
  return events;
}

ProcessEvents::~ProcessEvents() {
  for (const int fd : {request_fd_, signal_fd_, host_fd_}) {
    if (fd >= 0) close(fd);
  }
}

void ProcessEvents::RequestShutdown() {
  const uint64_t one = 1;
  // Fails only where the counter is full, and then the event is there already.
  [[maybe_unused]] const ssize_t n = write(request_fd_, &one, sizeof one);
}

bool ProcessEvents::HostDied() const { return watch_host_ && getppid() != host_pid_; }

EndReason ProcessEvents::Wait(std::chrono::milliseconds limit) {
  std::array<pollfd, 3> fds{
      {{request_fd_, POLLIN, 0}, {signal_fd_, POLLIN, 0}, {host_fd_, POLLIN, 0}}};
  const int n = poll(fds.data(), fds.size(), static_cast<int>(limit.count()));
  if (n > 0) {
    if (fds[0].revents != 0) return EndReason::kShutdownRpc;
    if (fds[1].revents != 0) return EndReason::kSignal;
    if (fds[2].revents != 0) return EndReason::kHostDied;
  }
  return HostDied() ? EndReason::kHostDied : EndReason::kNone;
}

}  // namespace sless::plugin
