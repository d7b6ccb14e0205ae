#include "server/runner/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "server/runner/engine_impl.h"

namespace sless::runner {
namespace {

using base::Code;
using base::SteadyPoint;
using std::chrono::milliseconds;

constexpr auto kLastWords = std::chrono::seconds(2);  // for the log of a replica that ends

}  // namespace

void Engine::Impl::Run() {
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

void Engine::Impl::Wait() {
  fds_.clear();
  fds_.push_back({wake_.fd(), POLLIN, 0});
  if (!log_.empty()) fds_.push_back({options_.log_fd, POLLOUT, 0});
  if (worker_) worker_->AddTo(fds_, !log_.WaitsUntil());
  poll(fds_.data(), fds_.size(), static_cast<int>(std::min<int64_t>(NextTimer().count(), 60'000)));
  wake_.Clear();
}

milliseconds Engine::Impl::NextTimer() const {
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

Phase Engine::Impl::phase() const {
  return health_.With([](const Health& h) { return h.phase; });
}

void Engine::Impl::SetPhase(Phase phase) {
  health_.With([&](Health& h) { h.phase = phase; });
}

void Engine::Impl::System(std::string_view line) {
  tail_.Add(line);
  log_.Write("system", "", line);
}

void Engine::Impl::Timers() {
  const auto now = clock_.Steady();
  for (auto& [id, call] : calls_) {
    if (call->answered || now < call->deadline) continue;
    const std::string seconds =
        fmt::format("{:g}", static_cast<double>(options_.timeout.count()) / 1000);
    log_.Write("system", call->in.request_id,
               fmt::format("the call was ended after timeout_sec = {}", seconds));
    AnswerEarly(*call,
                MakeError(Code::kDeadlineExceeded, "Timeout",
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

void Engine::Impl::KillWhatDoesNotEnd(SteadyPoint now) {
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
    System(
        fmt::format("{} other calls of the process did not end within {} ms and were ended with it",
                    healthy, options_.others_wait.count()));
  }
  expected_exit_ = true;
  replace_by_.reset();
  worker_->Kill();
}

void Engine::Impl::GiveUpRestart() {
  init_error_ = MakeError(
      Code::kFailedPrecondition, "",
      fmt::format("the new process was not ready within {} ms", options_.restart_wait.count()));
  expected_exit_ = true;
  worker_->Kill();
}

void Engine::Impl::StartDrain() {
  const Phase now = phase();
  if (drain_until_ || now == Phase::kEnded) return;
  if (now == Phase::kStartFailed || !worker_) return End(kExitDrained);
  drain_until_ = clock_.Steady() + options_.grace;
  SetPhase(Phase::kDraining);
  RefuseWaiting();
  SendFrame({{"type", "stop"}});
}

void Engine::Impl::FinishDrain() {
  if (!calls_.empty()) {
    System(fmt::format("{} calls did not end within the grace time of {} ms and were ended",
                       calls_.size(), options_.grace.count()));
  }
  worker_.reset();  // ended is what runs no more
  FailAll(MakeError(Code::kInternal, "ReplicaDied",
                    "the replica was stopped; the call did not end within the grace time"));
  End(kExitDrained);
}

Engine::Engine(EngineOptions options, const base::Clock& clock)
    : impl_(std::make_unique<Impl>(std::move(options), clock)) {}
Engine::~Engine() = default;
void Engine::Submit(EngineCall call) { impl_->Submit(std::move(call)); }
void Engine::Drain() { impl_->Drain(); }
Health Engine::health() const { return impl_->health(); }
int Engine::ended_fd() const { return impl_->ended_fd(); }
int Engine::exit_code() const { return impl_->exit_code(); }

}  // namespace sless::runner
