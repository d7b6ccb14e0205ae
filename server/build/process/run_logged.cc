#include "server/build/process/run_logged.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "client/base/fd.h"
#include "client/base/strings.h"

namespace sless::build {
namespace {

constexpr size_t kMaxLine = 4096;
constexpr int kLookForStopMs = 100;
constexpr std::chrono::milliseconds kWatch{250};

// Asks a watch again when it is time, so that it takes little of the machine however long it takes.
class Watching {
 public:
  Watching(const Watch& watch, const base::Clock& clock) : watch_(watch), clock_(clock) {}
  base::Status Ask() {
    const auto begin = clock_.Steady();
    if (!watch_ || begin < next_) return base::Ok();
    const auto answer = watch_();
    const auto end = clock_.Steady();
    next_ = end + kWatch + 10 * (end - begin);
    return answer;
  }

 private:
  const Watch& watch_;
  const base::Clock& clock_;
  base::SteadyPoint next_{};
};

// Hands on whole lines; a carriage return (progress bars) ends one too.
class Lines {
 public:
  explicit Lines(const LogLine& log) : log_(log) {}
  void Feed(std::string_view bytes) {
    for (const char c : bytes) {
      if (c == '\n' || c == '\r') {
        Emit();
      } else if (partial_.size() < kMaxLine) {
        partial_ += c;
      }
    }
  }
  void Emit() {
    if (!base::Trim(partial_).empty())
      log_(base::IsUtf8(partial_) ? partial_ : "(a line that is not UTF-8)");
    partial_.clear();
  }

 private:
  const LogLine& log_;
  std::string partial_;
};

}  // namespace

base::Result<base::ExitStatus> RunLogged(const base::SpawnOptions& options, base::Deadline deadline,
                                         const base::Clock& clock, const std::stop_token& stop,
                                         const LogLine& log, const Watch& watch) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0)
    return base::SystemError("cannot start " + options.command.at(0) + ": pipe",
                             base::Code::kInternal);
  base::SpawnOptions with = options;
  with.fds.emplace_back(out[1], 1);
  with.fds.emplace_back(out[1], 2);
  auto child = base::Spawn(with);
  close(out[1]);
  if (!child) {
    close(out[0]);
    return tl::unexpected(child.error());
  }
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  Lines lines(log);
  std::optional<base::ExitStatus> exit;
  Watching watching(watch, clock);
  std::optional<base::Error> ended;
  char buffer[16 * 1024];
  const auto drain = [&] {
    for (ssize_t n; (n = read(out[0], buffer, sizeof buffer)) > 0;)
      lines.Feed({buffer, static_cast<size_t>(n)});
  };
  while (!exit) {
    pollfd fds[2] = {{out[0], POLLIN, 0}, {child->pidfd, POLLIN, 0}};
    const auto wait = std::min<int64_t>(deadline.Left(clock).count() + 1, kLookForStopMs);
    poll(fds, 2, static_cast<int>(wait));
    if ((fds[0].revents & POLLIN) != 0) {
      const ssize_t n = read(out[0], buffer, sizeof buffer);
      if (n > 0) lines.Feed({buffer, static_cast<size_t>(n)});
    }
    if (!ended && stop.stop_requested())
      ended = base::Error{base::Code::kCancelled, "the build was stopped", "", "", {}};
    if (!ended && deadline.Passed(clock)) {
      ended = base::Error{base::Code::kDeadlineExceeded,
                          "the build did not end in time and was stopped",
                          "",
                          "",
                          {}};
    }
    if (!ended) {
      if (auto asked = watching.Ask(); !asked) ended = std::move(asked.error());
    }
    if (ended) base::KillGroup(*child);
    exit = base::Reap(*child);
    if (!exit && (fds[0].revents & (POLLHUP | POLLIN)) == POLLHUP)
      usleep(1000);  // it closed its output and runs on
  }
  drain();
  lines.Emit();
  close(out[0]);
  if (ended) return base::Err(std::move(*ended));
  return *exit;
}

}  // namespace sless::build
