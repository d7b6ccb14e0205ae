#include "server/runner/engine.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "client/base/guarded.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/runner/log_writer.h"
#include "server/runner/worker_error.h"
#include "server/runner/worker_link.h"

namespace sless::runner {
namespace {

using base::Code;
using base::SteadyPoint;
using nlohmann::json;
using std::chrono::milliseconds;

constexpr size_t kTail = 30;
constexpr size_t kMaxTailLine = 1000;
constexpr auto kLastWords = std::chrono::seconds(2);  // for the log of a replica that ends

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

// The end of a log travels in errors, job status and Terraform's state.
void Push(std::deque<std::string>& ring, std::string_view line) {
  ring.push_back(base::Truncate(line, kMaxTailLine));
  if (ring.size() > kTail) ring.pop_front();
}

std::vector<std::string> ToVector(const std::deque<std::string>& ring) {
  return {ring.begin(), ring.end()};
}

base::Error MakeError(Code code, std::string reason, std::string message) {
  return base::Error{code, std::move(message), "", std::move(reason), {}};
}

// Both files have a line "oom_kill N".
int64_t OomKills(int fd) {
  char text[512];
  const ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof text - 1, 0);
  if (n <= 0) return 0;
  text[n] = 0;
  const char* at = std::strstr(text, "oom_kill ");
  return at == nullptr ? 0 : std::strtoll(at + 9, nullptr, 10);
}

}  // namespace

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
    SteadyPoint started;
    SteadyPoint deadline;
    std::optional<SteadyPoint> kill_at;  // cancelled: it is stuck from then on
    bool heard = false;              // the worker goes on after the cancel: only the call may hang
    bool answered = false;           // or `verdict` waits to be
    std::optional<Outcome> verdict;  // await_end: the answer, once the call has ended
    bool stuck = false;              // kill_at has passed
    std::deque<std::string> ring;
    std::optional<std::stop_callback<std::function<void()>>> gone;
  };
  struct Waiting {
    EngineCall in;
    SteadyPoint since;
    SteadyPoint until;
  };

  // -------------------------------------------------------------------------------------------------------------
  // the loop

  void Run() {
    StartWorker();
    while (!quit_ && phase() != Phase::kEnded) {
      Wait();
      for (auto& command : inbox_.With([](auto& inbox) { return std::exchange(inbox, {}); }))
        command();
      if (worker_) ServeWorker();
      Timers();
      log_.Flush();
    }
    if (worker_) worker_.reset();
    const auto stopped =
        MakeError(Code::kInternal, "ReplicaDied", "the replica was stopped while the call ran");
    FailAll(stopped);
    RefuseWaiting();
    log_.FlushAll(kLastWords);
    SetPhase(Phase::kEnded);
    ended_.Signal();
    // What is still submitted gets its refusal until we are destroyed.
    while (!quit_) {
      pollfd fd{wake_.fd(), POLLIN, 0};
      poll(&fd, 1, 1000);
      wake_.Clear();
      for (auto& command : inbox_.With([](auto& inbox) { return std::exchange(inbox, {}); }))
        command();
    }
  }

  void Wait() {
    fds_.clear();
    fds_.push_back({wake_.fd(), POLLIN, 0});
    if (!log_.empty()) fds_.push_back({options_.log_fd, POLLOUT, 0});
    if (worker_) worker_->AddTo(fds_, !log_.WaitsUntil());
    poll(fds_.data(), fds_.size(),
         static_cast<int>(std::min<int64_t>(NextTimer().count(), 60'000)));
    wake_.Clear();
  }

  milliseconds NextTimer() const {
    const auto now = clock_.Steady();
    auto next = now + std::chrono::seconds(60);
    for (const auto& [id, call] : calls_) {
      // Once the worker is killed nothing is found stuck any more.
      const auto kill_at = expected_exit_ ? std::nullopt : call->kill_at;
      if (!call->stuck && (kill_at || !call->answered))
        next = std::min(next, kill_at.value_or(call->deadline));
      if (call->stuck && now < call->deadline) next = std::min(next, call->deadline);
    }
    if (replace_by_) next = std::min(next, *replace_by_);
    for (const auto& waiting : waiting_) next = std::min(next, waiting.until);
    if (drain_until_) next = std::min(next, *drain_until_);
    if (const auto until = log_.WaitsUntil()) next = std::min(next, *until);
    if (worker_ && !worker_ready_ && restart_until_) next = std::min(next, *restart_until_);
    const auto left = std::chrono::ceil<milliseconds>(next - now);
    return std::max(left, milliseconds(0));
  }

  Phase phase() const {
    return health_.With([](const Health& h) { return h.phase; });
  }
  void SetPhase(Phase phase) {
    health_.With([&](Health& h) { h.phase = phase; });
  }

  void System(std::string_view line) {
    Push(tail_, line);
    log_.Write("system", "", line);
  }

  // ------------------------------------------------------------------------------------------------------------
  // the worker

  void StartWorker() {
    worker_ready_ = heap_exhausted_ = expected_exit_ = false;
    replace_by_.reset();
    if (was_ready_) restart_until_ = clock_.Steady() + options_.restart_wait;
    oom_before_ = OomKills(options_.oom_fd);
    auto worker =
        WorkerLink::Start(options_.worker, {[this](const Frame& frame) { OnFrame(frame); },
                                            [this](std::string_view stream, std::string_view line) {
                                              if (line.find("JavaScript heap out of memory") !=
                                                  std::string_view::npos)
                                                heap_exhausted_ = true;
                                              Line(stream, OnlyCall(), line);
                                            }});
    if (!worker) return StartFailed(worker.error());
    worker_ = std::move(*worker);
  }

  void StartFailed(base::Error error) {
    error.reason = out_of_memory_                           ? "OutOfMemory"
                   : error.code == Code::kResourceExhausted ? "NoResources"
                                                            : "StartFailed";
    error.code = Code::kFailedPrecondition;
    error.source.log_tail =
        ToVector(tail_);  // without our own line, which says what the message says
    System("the function cannot be started: " + error.message);
    worker_.reset();
    health_.With([&](Health& h) { h = {Phase::kStartFailed, error}; });
    RefuseWaiting();
    if (was_ready_) End(kExitStartFailed);  // after a replacement nobody asks /healthz any more
  }

  void End(int code) {
    exit_code_ = code;
    SetPhase(Phase::kEnded);
  }

  void ServeWorker() {
    worker_->Write();
    // A function that prints more than the server can take waits in its print, for a while.
    if (!log_.WaitsUntil()) worker_->Read();
    if (!worker_->broken().empty() && !expected_exit_) worker_->Kill();
    if (const auto exit = worker_->Reap()) OnWorkerExit(*exit);
  }

  void SendFrame(const json& head) {
    if (worker_) worker_->Send(base::DumpJson(head), "");
  }

  // Bytes from the pipes name no call; where there can be but one, they are its.
  Call* OnlyCall() {
    return options_.concurrency == 1 && calls_.size() == 1 ? calls_.begin()->second.get() : nullptr;
  }

  void Line(std::string_view stream, Call* call, std::string_view line) {
    const std::string cut = base::Truncate(line, kMaxLine);
    if (call != nullptr) Push(call->ring, cut);
    Push(tail_, cut);
    log_.Write(stream, call == nullptr ? "" : call->in.request_id, cut);
  }

  void OnFrame(const Frame& frame) {
    const auto head = base::ParseJson(frame.head);
    if (!head || !head->is_object()) {
      worker_->Break("sent a frame whose head is no JSON object");
      return;
    }
    const std::string type = TextOf(*head, "type");
    const auto it = calls_.find(IntOf(*head, "id"));
    Call* call = it == calls_.end() ? nullptr : it->second.get();
    if (type == "log") {
      Line(TextOf(*head, "stream") == "stderr" ? "stderr" : "stdout", call, TextOf(*head, "line"));
    } else if (type == "result" && call != nullptr) {
      OnResult(*call, frame.payload);
    } else if (type == "error" && call != nullptr) {
      OnError(*call, ReadWorkerError(*head));
    } else if (type == "ready") {
      SendFrame({{"type", "ping"}, {"id", 0}});
    } else if (type == "pong" && !worker_ready_) {
      OnReady();
    } else if (type == "pong" && call != nullptr && call->answered) {
      call->heard = true;
      AdmitWaiting();
    } else if (type == "ping") {
      SendFrame({{"type", "pong"}, {"id", IntOf(*head, "id")}});
    } else if (type == "init_error") {
      OnInitError(ReadWorkerError(*head));
    }
    // An answer of a call that is over, or a word of a newer worker: nothing to do.
  }

  void OnReady() {
    worker_ready_ = was_ready_ = true;
    if (phase() == Phase::kStarting) SetPhase(Phase::kReady);
    AdmitWaiting();
  }

  void OnInitError(const WorkerError& error) {
    for (const auto& line : error.trace) Line("stderr", nullptr, line);
    init_error_ = base::Error{Code::kFailedPrecondition, error.message, "", "", error.source};
    worker_->Kill();  // it ends by itself, but not by our leave; its end brings the failure out
  }

  std::string Cause(const base::ExitStatus& exit) {
    const std::string limit =
        fmt::format("memory_mb is {}; raise it or use less", options_.memory_mb);
    if (OomKills(options_.oom_fd) > oom_before_ && exit.signal == SIGKILL) {
      out_of_memory_ = true;
      return "was killed: out of memory (" + limit + ")";
    }
    if (heap_exhausted_) {
      out_of_memory_ = true;
      return "ended: the JavaScript heap is out of memory (" + limit + ")";
    }
    // Every process closes its channel when it ends; only one that was killed for it did so before.
    const auto& broken = worker_->broken();
    return broken.empty() || exit.signal != SIGKILL ? exit.Text() : broken + " and was killed";
  }

  void OnWorkerExit(const base::ExitStatus& exit) {
    const bool expected = expected_exit_;
    worker_->ReadRest();  // results that it sent before
    const std::string cause = Cause(exit);
    worker_.reset();
    if (drain_until_) {
      FailAll(MakeError(Code::kInternal, "ReplicaDied",
                        fmt::format("the function's process {} in the middle of the call", cause)));
      return End(kExitDrained);
    }
    if (init_error_) return StartFailed(*std::exchange(init_error_, std::nullopt));
    if (expected) {
      DropCalls();
      return StartWorker();
    }
    if (!worker_ready_) {
      const std::string file = options_.entrypoint.substr(0, options_.entrypoint.rfind('.'));
      return StartFailed(base::Error{Code::kFailedPrecondition,
                                     fmt::format("the process {} while it loaded {}", cause, file),
                                     "",
                                     "",
                                     {}});
    }
    const std::string line = fmt::format("the function's process {}", cause);
    System(line);
    const int in_call = calls_.empty() ? 0 : kExitInCall;
    FailAll(MakeError(Code::kInternal, "ReplicaDied", line + " in the middle of the call"));
    RefuseWaiting();
    End((out_of_memory_ ? kExitOutOfMemory : kExitWorkerDied) + in_call);
  }

  // -------------------------------------------------------------------------------------------------------------
  // the calls

  // A cancelled call that its process must be replaced for: it has blocked the process, or its time
  // is up, or somebody waits for its end. One whose caller has gone and that hangs by itself only
  // keeps its place. Asked of the calls each time, never noted: where such a call ends by itself
  // after all, the process goes on.
  bool Harms(const Call& call) const {
    return call.kill_at && (!call.heard || call.in.await_end || clock_.Steady() >= call.deadline);
  }
  bool Replacing() const {
    return std::any_of(calls_.begin(), calls_.end(),
                       [this](const auto& c) { return c.second->stuck && Harms(*c.second); });
  }
  // Until such a call ends, or is found stuck, the others wait.
  bool TakesCalls() const {
    return worker_ && worker_ready_ && !expected_exit_ &&
           std::none_of(calls_.begin(), calls_.end(),
                        [this](const auto& c) { return Harms(*c.second); });
  }

  void Admit(EngineCall call) {
    const Phase now = phase();
    if (now == Phase::kDraining || now == Phase::kEnded || now == Phase::kStartFailed)
      return Refuse(call, true);
    const bool ending =
        std::any_of(calls_.begin(), calls_.end(), [](const auto& c) { return c.second->answered; });
    if (TakesCalls() && waiting_.empty() &&
        calls_.size() < static_cast<size_t>(options_.concurrency)) {
      return Dispatch(std::move(call), clock_.Steady());
    }
    // The gateway counts a call whose time was up as ended; here its place is free a moment later.
    if ((!TakesCalls() || ending) && waiting_.size() < static_cast<size_t>(options_.concurrency)) {
      const auto most = worker_ready_ && !expected_exit_ && !TakesCalls() ? options_.replace_wait
                                                                          : options_.slot_wait;
      const auto now = clock_.Steady();
      waiting_.push_back({std::move(call), now, now + most});
      return;
    }
    Refuse(call, false);
  }

  void AdmitWaiting() {
    while (TakesCalls() && !waiting_.empty() &&
           calls_.size() < static_cast<size_t>(options_.concurrency)) {
      EngineCall call = std::move(waiting_.front().in);
      const SteadyPoint since = waiting_.front().since;
      waiting_.pop_front();
      if (call.gone.stop_requested()) {
        Refuse(call, false);
        continue;
      }
      Dispatch(std::move(call), since);
    }
  }

  void Refuse(const EngineCall& call, bool draining) {
    Outcome outcome;
    outcome.error =
        draining ? MakeError(Code::kUnavailable, "Draining",
                             "this replica takes no calls now; the handler did not begin")
                 : MakeError(
                       Code::kUnavailable, "Busy",
                       fmt::format(
                           "this replica runs {} calls, its concurrency; the handler did not begin",
                           options_.concurrency));
    call.done(std::move(outcome));
  }

  void RefuseWaiting() {
    for (auto& waiting : std::exchange(waiting_, {})) Refuse(waiting.in, true);
  }

  // The time of a call runs `since` it came, as for the gateway; the handler is told what is left.
  void Dispatch(EngineCall in, SteadyPoint since) {
    auto call = std::make_unique<Call>();
    call->in = std::move(in);
    call->id = ++last_id_;
    call->started = clock_.Steady();
    call->deadline = since + options_.timeout;
    const auto left = call->deadline - call->started;
    const auto unix_ms =
        std::chrono::duration_cast<milliseconds>((clock_.Now() + left).time_since_epoch()).count();
    const json head{{"type", "call"},
                    {"id", call->id},
                    {"context",
                     {{"requestId", call->in.request_id},
                      {"deadlineMs", unix_ms},
                      {"function", options_.function},
                      {"revision", options_.revision},
                      {"memoryMb", options_.memory_mb},
                      {"source", call->in.source}}}};
    Call& placed = *(calls_[call->id] = std::move(call));
    if (const auto sent = worker_->Send(base::DumpJson(head), placed.in.event_json); !sent) {
      Outcome outcome;
      outcome.error = sent.error();
      return Finish(placed, std::move(outcome));
    }
    placed.in.event_json.clear();
    placed.in.event_json.shrink_to_fit();
    placed.gone.emplace(placed.in.gone,
                        [this, id = placed.id] { Post([this, id] { OnGone(id); }); });
  }

  // Takes the call out of the list before it answers: whoever reads the answer finds the place
  // free.
  void Finish(Call& call, Outcome outcome) {
    // A line that a child of the call has not ended must not become part of the next call's.
    if (worker_ && options_.concurrency == 1) worker_->EndLines();
    outcome.log_tail = ToVector(call.ring);
    outcome.duration_ms =
        std::chrono::duration_cast<milliseconds>(clock_.Steady() - call.started).count();
    log_.Flush();
    const auto owned = std::move(calls_.extract(call.id).mapped());
    if (owned->verdict) {
      owned->in.done(std::move(*owned->verdict));
    } else if (!owned->answered) {
      owned->in.done(std::move(outcome));
    }
    AdmitWaiting();
  }

  // Answers while the worker still runs the call; one that awaits its end is answered then.
  void AnswerEarly(Call& call, base::Error error) {
    Outcome outcome;
    outcome.error = std::move(error);
    outcome.log_tail = ToVector(call.ring);
    outcome.duration_ms =
        std::chrono::duration_cast<milliseconds>(clock_.Steady() - call.started).count();
    call.answered = true;
    call.kill_at = clock_.Steady() + options_.cancel_wait;
    log_.Flush();
    if (call.in.await_end) {
      call.verdict = std::move(outcome);
    } else {
      call.in.done(std::move(outcome));
    }
    SendFrame({{"type", "cancel"}, {"id", call.id}});
    SendFrame({{"type", "ping"}, {"id", call.id}});
  }

  void OnResult(Call& call, const std::string& payload) {
    // What the handler wrote to the pipes belongs before its answer.
    worker_->ReadPipes();
    Outcome outcome;
    if (const auto valid = base::CheckJson(payload); valid) {
      outcome.result_json = payload;
    } else {
      outcome.error = MakeError(Code::kFailedPrecondition, "HandlerError",
                                "the handler's result: " + valid.error().message);
    }
    Finish(call, std::move(outcome));
  }

  void OnError(Call& call, WorkerError error) {
    if (call.answered) return Finish(call, {});
    worker_->ReadPipes();
    Outcome outcome;
    outcome.error =
        base::Error{Code::kFailedPrecondition, error.message, "", "HandlerError", error.source};
    outcome.trace = error.trace;
    // The log has the traceback too; the call's own tail does not, its answer shows it apart.
    const auto& lines = error.trace.empty() ? std::vector<std::string>{error.message} : error.trace;
    for (const auto& line : lines) {
      Push(tail_, line);
      log_.Write("stderr", call.in.request_id, line);
    }
    Finish(call, std::move(outcome));
  }

  void OnGone(int64_t id) {
    const auto it = calls_.find(id);
    if (it == calls_.end() || it->second->answered) return;
    AnswerEarly(*it->second,
                MakeError(Code::kCancelled, "Timeout", "the caller has gone; the call was ended"));
  }

  void FailAll(const base::Error& error) {
    while (!calls_.empty()) {
      Outcome outcome;
      outcome.error = error;
      Finish(*calls_.begin()->second, std::move(outcome));
    }
  }

  // After a kill of ours: what has not been answered yet was caught up in it.
  void DropCalls() {
    FailAll(MakeError(Code::kInternal, "ReplicaDied",
                      "the function's process was ended because another of its calls did not end "
                      "when its time was up"));
  }

  // ---------------------------------------------------------------------------------------------------------------
  // timers

  void Timers() {
    const auto now = clock_.Steady();
    for (auto& [id, call] : calls_) {
      if (call->answered || now < call->deadline) continue;
      const std::string seconds =
          fmt::format("{:g}", static_cast<double>(options_.timeout.count()) / 1000);
      log_.Write("system", call->in.request_id,
                 fmt::format("the call was ended after timeout_sec = {}", seconds));
      AnswerEarly(
          *call, MakeError(Code::kDeadlineExceeded, "Timeout",
                           fmt::format("the call did not end within timeout_sec = {} and was ended",
                                       seconds)));
    }
    KillWhatDoesNotEnd(now);
    for (auto it = waiting_.begin(); it != waiting_.end();) {
      if (now < it->until && !it->in.gone.stop_requested()) {
        ++it;
        continue;
      }
      const EngineCall call = std::move(it->in);
      it = waiting_.erase(it);
      Refuse(call,
             !TakesCalls());  // of a process that is not replaced in time: try another replica
    }
    if (worker_ && !worker_ready_ && !expected_exit_ && restart_until_ && now >= *restart_until_)
      GiveUpRestart();
    if (drain_until_ && (calls_.empty() || now >= *drain_until_)) FinishDrain();
  }

  void KillWhatDoesNotEnd(SteadyPoint now) {
    if (!worker_ || expected_exit_) return;
    for (auto& [id, call] : calls_) call->stuck = call->kill_at && now >= *call->kill_at;
    const auto healthy =
        std::count_if(calls_.begin(), calls_.end(), [](const auto& c) { return !c.second->stuck; });
    const bool alone = healthy == 0 && !calls_.empty();
    if (!alone && !Replacing()) {
      replace_by_.reset();
      return;
    }
    if (!replace_by_) {
      System("a call did not end when it was told to; the process is replaced");
      replace_by_ = now + options_.others_wait;
    }
    // Other calls of the process may run to their own ends first, but not close it for long.
    if (!alone && now < *replace_by_) return;
    if (!alone) {
      System(fmt::format(
          "{} other calls of the process did not end within {} ms and were ended with it", healthy,
          options_.others_wait.count()));
    }
    expected_exit_ = true;
    replace_by_.reset();
    worker_->Kill();
  }

  // Nobody asks /healthz any more: a second worker that hangs while it loads would hang for good.
  void GiveUpRestart() {
    init_error_ = MakeError(
        Code::kFailedPrecondition, "",
        fmt::format("the new process was not ready within {} ms", options_.restart_wait.count()));
    expected_exit_ = true;
    worker_->Kill();
  }

  // ----------------------------------------------------------------------------------------------------------------
  // drain

  void StartDrain() {
    const Phase now = phase();
    if (drain_until_ || now == Phase::kEnded) return;
    if (now == Phase::kStartFailed || !worker_) return End(kExitDrained);
    drain_until_ = clock_.Steady() + options_.grace;
    SetPhase(Phase::kDraining);
    RefuseWaiting();
    SendFrame({{"type", "stop"}});
  }

  void FinishDrain() {
    if (!calls_.empty()) {
      System(fmt::format("{} calls did not end within the grace time of {} ms and were ended",
                         calls_.size(), options_.grace.count()));
    }
    worker_.reset();  // ended is what runs no more
    FailAll(MakeError(Code::kInternal, "ReplicaDied",
                      "the replica was stopped; the call did not end within the grace time"));
    End(kExitDrained);
  }

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
  std::deque<std::string> tail_;
  std::optional<SteadyPoint> drain_until_;
  std::optional<SteadyPoint> restart_until_;  // of a worker that replaces another one
  std::optional<SteadyPoint> replace_by_;     // the worker with a call that does not end is killed

  std::thread thread_;  // last: all else exists before it starts
};

Engine::Engine(EngineOptions options, const base::Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), clock)) {}
Engine::~Engine() = default;
void Engine::Submit(EngineCall call) { impl_->Submit(std::move(call)); }
void Engine::Drain() { impl_->Drain(); }
Health Engine::health() const { return impl_->health(); }
int Engine::ended_fd() const { return impl_->ended_fd(); }
int Engine::exit_code() const { return impl_->exit_code(); }

}  // namespace sless::runner
