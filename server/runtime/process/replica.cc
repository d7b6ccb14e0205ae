#include "server/runtime/process/replica.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "client/api/error_body.h"
#include "client/base/json.h"
#include "client/base/strings.h"

namespace sless::runtime {
namespace {

using base::SteadyPoint;
using std::chrono::milliseconds;

constexpr size_t kTail = 30;
constexpr size_t kMaxTailLine = 1000;       // as the runner cuts it
constexpr size_t kMaxRawLine = 256 * 1024;  // a line of 16 KiB, every byte escaped
constexpr size_t kReadPerTurn = 512 * 1024;
// A replica that was ready for so long is started again at once.
constexpr auto kSteadyAfter = std::chrono::seconds(10);

// Exit codes of sless-runner (server/runner/engine.h).
constexpr int kExitWorkerDied = 70;
constexpr int kExitOutOfMemory = 72;
constexpr int kExitInCall = 16;

// A call that ends its process is no broken start: were there a wait, one caller could switch a
// function off for all others. It cannot spin either, since each start takes one more call.
bool EndedByCall(base::ExitStatus exit) {
  return exit.signal == 0 && (exit.code == kExitWorkerDied + kExitInCall ||
                              exit.code == kExitOutOfMemory + kExitInCall);
}

// " or …" where so much wants to run that it may be no fault of the function.
std::string OrTooBusy() {
  double load = 0;
  const long processors = sysconf(_SC_NPROCESSORS_ONLN);
  if (getloadavg(&load, 1) != 1 || load <= 2.0 * static_cast<double>(processors)) return "";
  return fmt::format(", or the machine is too busy (load {:.0f} on {} processors)", load,
                     processors);
}

std::string Text(const nlohmann::json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

}  // namespace

RunningReplica::RunningReplica(RevisionKey key, ReplicaSpec spec, Interpreter interpreter,
                               Deps deps)
    : key_(std::move(key)),
      spec_(std::move(spec)),
      interpreter_(std::move(interpreter)),
      deps_(deps),
      backoff_(deps.options.first_backoff, deps.options.max_backoff) {
  view_.id = base::RandomHex(6);
}

RunningReplica::~RunningReplica() {
  if (child_.pid > 0) {
    base::KillGroup(child_);
    base::WaitFor(child_);
  }
  CloseFds();
  deps_.dead_cgroups.push_back(cgroup_);
  deps_.launcher.Forget(view_.id);
}

void RunningReplica::Start(TurnEvents& events) {
  known_failure_.reset();
  tail_.clear();
  last_system_.clear();
  log_buffer_.clear();
  restart_at_once_ = false;
  started_ = deps_.clock.Steady();
  next_probe_ = started_;
  view_.state = ReplicaState::kStarting;
  view_.failure.reset();
  events.changed = true;
  auto launched = deps_.launcher.Launch(key_, spec_, view_.id, interpreter_);
  if (!launched) {
    const bool full = launched.error().code == base::Code::kResourceExhausted;
    return Fail({full ? "NoResources" : "StartFailed", launched.error().message, "", 0, {}},
                events);
  }
  child_ = launched->child;
  control_ = launched->control;
  log_ = launched->log;
  cgroup_ = launched->cgroup;
  view_.endpoint = "unix:" + deps_.launcher.SocketPath(view_.id);
}

void RunningReplica::Stop(SteadyPoint kill_at, TurnEvents& events) {
  if (stopping()) {
    if (kill_at_) kill_at_ = std::min(*kill_at_, kill_at);
    return;
  }
  view_.state = ReplicaState::kStopping;
  events.changed = true;
  kill_at_ = kill_at;
  if (control_ >= 0) close(std::exchange(control_, -1));
  probe_.reset();
}

void RunningReplica::Kill(TurnEvents& events) {
  if (stopping() || child_.pid < 0) return;
  known_failure_ =
      api::Failure{"Crashed", "the replica ran no call and took none; it was killed", "", 0, {}};
  restart_at_once_ = true;
  view_.state = ReplicaState::kFailed;
  view_.failure = known_failure_;
  events.changed = true;
  base::KillGroup(child_);
}

void RunningReplica::AddFds(std::vector<int>& fds, bool with_log) const {
  if (child_.pid > 0) fds.push_back(child_.pidfd);
  if (log_ >= 0 && with_log) fds.push_back(log_);
  if (probe_ && probe_->fd() >= 0) fds.push_back(probe_->fd());
}

SteadyPoint RunningReplica::NextTimer() const {
  SteadyPoint next = SteadyPoint::max();
  if (view_.state == ReplicaState::kStarting) {
    next = std::min(next, started_ + deps_.options.start_deadline);
    if (!probe_) next = std::min(next, next_probe_);
  }
  if (view_.state == ReplicaState::kFailed && child_.pid < 0)
    next = std::min(next, view_.next_start);
  if (kill_at_) next = std::min(next, *kill_at_);
  return next;
}

void RunningReplica::Turn(TurnEvents& events, bool with_log) {
  if (with_log) ReadLog(events, false);
  const auto now = deps_.clock.Steady();
  if (view_.state == ReplicaState::kStarting) DoProbe(events);
  if (view_.state == ReplicaState::kStarting && now >= started_ + deps_.options.start_deadline &&
      !known_failure_) {
    known_failure_ = api::Failure{
        "StartFailed",
        fmt::format(
            "the function was not ready within {} s: loading {} takes too long{}",
            std::chrono::duration_cast<std::chrono::seconds>(deps_.options.start_deadline).count(),
            spec_.entrypoint, OrTooBusy()),
        "",
        0,
        {tail_.begin(), tail_.end()}};
    base::KillGroup(child_);
  }
  if (kill_at_ && now >= *kill_at_ && child_.pid > 0) {
    base::KillGroup(child_);
    kill_at_.reset();
  }
  if (auto exit = base::Reap(child_)) OnExit(*exit, events);
  if (view_.state == ReplicaState::kFailed && child_.pid < 0 && now >= view_.next_start) {
    ++view_.restarts;
    Start(events);
  }
}

// -------------------------------------------------------------------------------------------------------------------
// log

void RunningReplica::ReadLog(TurnEvents& events, bool to_end) {
  char buffer[32 * 1024];
  for (size_t done = 0; log_ >= 0 && (to_end ? done < 8 * 1024 * 1024 : done < kReadPerTurn);) {
    const ssize_t n = read(log_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      close(std::exchange(log_, -1));
      break;
    }
    done += static_cast<size_t>(n);
    log_buffer_.append(buffer, static_cast<size_t>(n));
    size_t begin = 0;
    for (size_t end; (end = log_buffer_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      OnLogLine(std::string_view(log_buffer_).substr(begin, end - begin), events);
    }
    log_buffer_.erase(0, begin);
    if (log_buffer_.size() > kMaxRawLine) {
      OnLogLine(log_buffer_, events);
      log_buffer_.clear();
    }
  }
  if (to_end && !log_buffer_.empty()) {
    OnLogLine(log_buffer_, events);
    log_buffer_.clear();
  }
}

void RunningReplica::OnLogLine(std::string_view text, TurnEvents& events) {
  if (text.empty()) return;
  ReplicaLine line{deps_.clock.Now(), "system", "", ""};
  const auto json =
      text.front() == '{' ? base::ParseJson(text) : base::Err(base::Code::kInvalidArgument, "");
  if (json && json->is_object() && json->contains("m")) {
    if (const auto time = base::ParseTime(Text(*json, "t"))) line.time = *time;
    line.stream = Text(*json, "s");
    line.request_id = Text(*json, "r");
    line.line = Text(*json, "m");
  } else if (text.starts_with(R"({"t":)")) {
    // The runner ended before it could write all of it.
    line.line = "log lines are missing here: the replica ended before they were taken";
    events.lines.push_back({key_, view_.id, std::move(line)});
    return;
  } else {
    // Not the runner's form: bubblewrap, the loader or the runner itself in trouble.
    line.line = base::IsUtf8(text) ? base::Truncate(text, 4096) : "(a line that is not UTF-8)";
  }
  if (line.stream == "system") last_system_ = line.line;
  // What the runner says itself becomes the failure's message; the tail is for what the function
  // printed.
  const bool said_by_runner = json && line.stream == "system";
  if (!said_by_runner) tail_.push_back(base::Truncate(line.line, kMaxTailLine));
  if (tail_.size() > kTail) tail_.pop_front();
  events.lines.push_back({key_, view_.id, std::move(line)});
}

// -----------------------------------------------------------------------------------------------------------------
// start

void RunningReplica::DoProbe(TurnEvents& events) {
  const auto now = deps_.clock.Steady();
  if (!probe_ && now >= next_probe_ && !known_failure_)
    probe_ = std::make_unique<Probe>(deps_.launcher.SocketPath(view_.id));
  if (!probe_) return;
  const auto answer = probe_->Read();
  if (!answer) return;
  probe_.reset();
  // Seen at most an eighth later than it happens, and seldom enough.
  next_probe_ = now + std::clamp<base::SteadyPoint::duration>((now - started_) / 8, milliseconds(5),
                                                              milliseconds(50));
  if (answer->status == 200) {
    view_.state = ReplicaState::kReady;
    ready_at_ = now;
    events.changed = true;
  } else if (answer->status == 500) {
    const base::Error error = api::ErrorFromBody(500, answer->body);
    known_failure_ =
        api::Failure{error.reason.empty() ? "StartFailed" : error.reason, error.message,
                     error.source.file, error.source.line, error.source.log_tail};
    base::KillGroup(child_);
  }
}

// -------------------------------------------------------------------------------------------------------------------
// end

void RunningReplica::OnExit(base::ExitStatus exit, TurnEvents& events) {
  ReadLog(events, true);
  const bool was_ready = view_.state == ReplicaState::kReady;
  const auto now = deps_.clock.Steady();
  api::Failure failure = known_failure_ ? *known_failure_ : WhyEnded(exit);
  CloseFds();
  deps_.dead_cgroups.push_back(std::exchange(cgroup_, {}));
  events.changed = true;
  if (stopping()) return;
  if (was_ready) {
    restart_at_once_ = restart_at_once_ || EndedByCall(exit) || now - ready_at_ >= kSteadyAfter;
    if (restart_at_once_)
      backoff_ = base::Backoff(deps_.options.first_backoff, deps_.options.max_backoff);
  }
  if (failure.log_tail.empty()) failure.log_tail.assign(tail_.begin(), tail_.end());
  Fail(std::move(failure), events);
}

void RunningReplica::Fail(api::Failure failure, TurnEvents& events) {
  const auto wait = restart_at_once_ ? milliseconds(0) : backoff_.Next();
  // Without the message, which may be the function's own words.
  deps_.log.Warn("replica failed", {{"function", key_.ns + "/" + key_.name},
                                    {"revision", key_.revision},
                                    {"replica", view_.id},
                                    {"reason", failure.reason},
                                    {"restarts", view_.restarts},
                                    {"wait_ms", wait.count()}});
  view_.state = ReplicaState::kFailed;
  view_.failure = std::move(failure);
  view_.next_start = deps_.clock.Steady() + wait;
  events.changed = true;
}

api::Failure RunningReplica::WhyEnded(base::ExitStatus exit) {
  const bool started = view_.state != ReplicaState::kStarting;
  const bool killed = exit.signal != 0 || exit.code > 128;
  const std::string text =
      last_system_.empty() ? "the replica's process " + exit.Text() : last_system_;
  const bool said = exit.code == kExitOutOfMemory || exit.code == kExitOutOfMemory + kExitInCall;
  if (said || (killed && OomKills(cgroup_.events) > 0)) {
    const std::string message =
        said && !last_system_.empty()
            ? last_system_
            : fmt::format(
                  "the function was killed: out of memory (memory_mb is {}; raise it or use less)",
                  spec_.memory_mb);
    return {"OutOfMemory", message, "", 0, {}};
  }
  if (exit.ok() && started) return {"Crashed", "the replica ended by itself", "", 0, {}};
  return {started ? "Crashed" : "StartFailed", text, "", 0, {}};
}

void RunningReplica::CloseFds() {
  for (int* fd : {&control_, &log_}) {
    if (*fd >= 0) close(std::exchange(*fd, -1));
  }
  probe_.reset();
}

}  // namespace sless::runtime
