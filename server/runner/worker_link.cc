#include "server/runner/worker_link.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace sless::runner {

base::Result<std::unique_ptr<WorkerLink>> WorkerLink::Start(const WorkerOptions& options,
                                                            Events events) {
  ASSIGN_OR_RETURN(auto process, WorkerProcess::Start(options));
  return std::unique_ptr<WorkerLink>(new WorkerLink(std::move(process), std::move(events)));
}

WorkerLink::WorkerLink(std::unique_ptr<WorkerProcess> process, Events events)
    : process_(std::move(process)),
      events_(std::move(events)),
      pipes_{{"stdout", process_->out()}, {"stderr", process_->err()}} {}

void WorkerLink::AddTo(std::vector<pollfd>& fds, bool reading) const {
  fds.push_back({process_->end(), POLLIN, 0});
  const int frames = (reading ? POLLIN : 0) | (out_.empty() ? 0 : POLLOUT);
  if (open_ && frames != 0) fds.push_back({process_->frames(), static_cast<short>(frames), 0});
  for (const auto& pipe : pipes_) {
    if (reading && pipe.open) fds.push_back({pipe.fd, POLLIN, 0});
  }
}

base::Status WorkerLink::Send(std::string_view head, std::string_view payload) {
  if (const size_t size = head.size() + payload.size(); size > kMaxFrame) {
    return base::Err(base::Code::kTooLarge,
                     fmt::format("the event and its context have {} bytes, at most {} are allowed",
                                 size, kMaxFrame),
                     "", "TooLarge");
  }
  out_.push_back(EncodeFrame(head, payload));
  Write();
  return base::Ok();
}

void WorkerLink::Write() {
  while (open_ && !out_.empty()) {
    const auto rest = std::string_view(out_.front()).substr(sent_);
    const ssize_t n = send(process_->frames(), rest.data(), std::min<size_t>(rest.size(), 1 << 20),
                           MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;  // full, or the worker ends: its exit tells
    sent_ += static_cast<size_t>(n);
    if (static_cast<size_t>(n) < rest.size()) continue;
    out_.pop_front();
    sent_ = 0;
  }
}

void WorkerLink::Read() {
  ReadFrames(4);
  ReadPipes();
}

void WorkerLink::ReadPipes() {
  for (auto& pipe : pipes_) ReadPipe(pipe, 256 * 1024);
}

void WorkerLink::EndLines() {
  for (auto& pipe : pipes_) {
    pipe.lines.End([&](std::string_view line) { events_.on_line(pipe.stream, line); });
  }
}

void WorkerLink::ReadRest() {
  ReadFrames(1024);
  for (auto& pipe : pipes_) ReadPipe(pipe, 1 << 20);
}

void WorkerLink::Break(std::string why) {
  open_ = false;
  if (broken_.empty()) broken_ = std::move(why);
}

void WorkerLink::ReadFrames(int turns) {
  static thread_local char buffer[64 * 1024];
  for (int turn = 0; open_ && turn < turns; ++turn) {
    const ssize_t n = recv(process_->frames(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) return Break("closed its channel to the runner");
    reader_.Feed({buffer, static_cast<size_t>(n)});
    for (;;) {
      const auto frame = reader_.Next();
      if (!frame) return Break("sent " + frame.error().message);
      if (!*frame) break;
      events_.on_frame(**frame);
    }
  }
}

void WorkerLink::ReadPipe(Pipe& pipe, size_t most) {
  char buffer[16 * 1024];
  const auto on_line = [&](std::string_view line) { events_.on_line(pipe.stream, line); };
  for (size_t done = 0; pipe.open && done < most;) {
    const ssize_t n = read(pipe.fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      pipe.open = false;
      pipe.lines.End(on_line);
      return;
    }
    pipe.lines.Feed({buffer, static_cast<size_t>(n)}, on_line);
    done += static_cast<size_t>(n);
  }
}

}  // namespace sless::runner
