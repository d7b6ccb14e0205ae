#pragma once

// The engine's own parts: engine.cc has its loop, timers and end, engine_worker.cc the worker
// process, engine_calls.cc the calls. For this room only.

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/base/guarded.h"
#include "client/base/strings.h"
#include "server/runner/engine.h"
#include "server/runner/log_writer.h"
#include "server/runner/worker_error.h"
#include "server/runner/worker_link.h"

namespace sless::runner {

class EventFd {
 public:
  EventFd() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~EventFd() { close(fd_); }
  EventFd(const EventFd&) = delete;
  void Signal() const { eventfd_write(fd_, 1); }
  void Clear() const {
    eventfd_t ignored;
    eventfd_read(fd_, &ignored);
  }
  int fd() const { return fd_; }

 private:
  int fd_;
};

/// The end of a log, which travels in errors, job status and Terraform's state.
class LastLines {
 public:
  void Add(std::string_view line) {
    lines_.push_back(base::Truncate(line, kMaxLength));
    if (lines_.size() > kMost) lines_.pop_front();
  }
  std::vector<std::string> ToVector() const { return {lines_.begin(), lines_.end()}; }

 private:
  static constexpr size_t kMost = 30;
  static constexpr size_t kMaxLength = 1000;
  std::deque<std::string> lines_;
};

inline base::Error MakeError(base::Code code, std::string reason, std::string message) {
  return {code, std::move(message), "", std::move(reason), {}};
}

class Engine::Impl {
 public:
  Impl(EngineOptions options, const base::Clock& clock)
      : options_(std::move(options)),
        clock_(clock),
        log_(options_.log_fd, clock),
        thread_([this] { Run(); }) {}
  ~Impl() {
    quit_ = true;
    wake_.Signal();
    thread_.join();
  }

  void Post(std::function<void()> command) {
    inbox_.With([&](auto& inbox) { inbox.push_back(std::move(command)); });
    wake_.Signal();
  }
  void Submit(EngineCall call) {
    auto shared = std::make_shared<EngineCall>(std::move(call));
    Post([this, shared] { Admit(std::move(*shared)); });
  }
  void Drain() {
    Post([this] { StartDrain(); });
  }
  Health health() const {
    return health_.With([](const Health& h) { return h; });
  }
  int ended_fd() const { return ended_.fd(); }
  int exit_code() const { return exit_code_; }

 private:
  struct Call {
    EngineCall in;
    int64_t id = 0;
    base::SteadyPoint started;
    base::SteadyPoint deadline;
    std::optional<base::SteadyPoint> kill_at;  // cancelled: it is stuck from then on
    bool heard = false;              // the worker goes on after the cancel: only the call may hang
    bool answered = false;           // or `verdict` waits to be
    std::optional<Outcome> verdict;  // await_end: the answer, once the call has ended
    bool stuck = false;              // kill_at has passed
    LastLines ring;
    std::optional<std::stop_callback<std::function<void()>>> gone;
  };
  struct Waiting {
    EngineCall in;
    base::SteadyPoint since;
    base::SteadyPoint until;
  };

  // engine.cc
  void Run();
  void Wait();
  std::chrono::milliseconds NextTimer() const;
  Phase phase() const;
  void SetPhase(Phase phase);
  void System(std::string_view line);

  // engine_worker.cc
  void StartWorker();
  void StartFailed(base::Error error);
  void End(int code);
  void ServeWorker();
  void SendFrame(const nlohmann::json& head);
  // Bytes from the pipes name no call; where there can be but one, they are its.
  Call* OnlyCall();
  void Line(std::string_view stream, Call* call, std::string_view line);
  void OnFrame(const Frame& frame);
  void OnReady();
  void OnInitError(const WorkerError& error);
  std::string Cause(const base::ExitStatus& exit);
  void OnWorkerExit(const base::ExitStatus& exit);

  // engine_calls.cc

  // A cancelled call that its process must be replaced for: it has blocked the process, or its time
  // is up, or somebody waits for its end. One whose caller has gone and that hangs by itself only
  // keeps its place. Asked of the calls each time, never noted: where such a call ends by itself
  // after all, the process goes on.
  bool Harms(const Call& call) const;
  bool Replacing() const;
  // Until such a call ends, or is found stuck, the others wait.
  bool TakesCalls() const;
  void Admit(EngineCall call);
  void AdmitWaiting();
  void Refuse(const EngineCall& call, bool draining);
  void RefuseWaiting();
  // The time of a call runs `since` it came, as for the gateway; the handler is told what is left.
  void Dispatch(EngineCall in, base::SteadyPoint since);
  // Takes the call out of the list before it answers: whoever reads the answer finds the place
  // free.
  void Finish(Call& call, Outcome outcome);
  // Answers while the worker still runs the call; one that awaits its end is answered then.
  void AnswerEarly(Call& call, base::Error error);
  void OnResult(Call& call, const std::string& payload);
  void OnError(Call& call, WorkerError error);
  void OnGone(int64_t id);
  void FailAll(const base::Error& error);
  // After a kill of ours: what has not been answered yet was caught up in it.
  void DropCalls();

  // engine.cc again: timers and the end
  void Timers();
  void KillWhatDoesNotEnd(base::SteadyPoint now);
  // Nobody asks /healthz any more: a second worker that hangs while it loads would hang for good.
  void GiveUpRestart();

  void StartDrain();
  void FinishDrain();

  EngineOptions options_;
  const base::Clock& clock_;
  EventFd wake_, ended_;
  base::Guarded<std::vector<std::function<void()>>> inbox_;
  base::Guarded<Health> health_;
  std::atomic<bool> quit_{false};
  std::atomic<int> exit_code_{kExitDrained};

  // Only the engine's thread from here on.
  LogWriter log_;
  std::unique_ptr<WorkerLink> worker_;
  std::vector<pollfd> fds_;
  bool worker_ready_ = false;   // this worker
  bool was_ready_ = false;      // any worker
  bool expected_exit_ = false;  // we killed it, or it told why it ends
  bool heap_exhausted_ = false, out_of_memory_ = false;
  std::optional<base::Error> init_error_;
  int64_t oom_before_ = 0;
  std::map<int64_t, std::unique_ptr<Call>> calls_;
  std::deque<Waiting> waiting_;
  int64_t last_id_ = 0;
  LastLines tail_;
  std::optional<base::SteadyPoint> drain_until_;
  std::optional<base::SteadyPoint> restart_until_;  // of a worker that replaces another one
  std::optional<base::SteadyPoint>
      replace_by_;  // the worker with a call that does not end is killed

  std::thread thread_;  // last: all else exists before it starts
};

}  // namespace sless::runner
