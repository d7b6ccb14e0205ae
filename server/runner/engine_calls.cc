#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "server/runner/engine_impl.h"

namespace sless::runner {
namespace {

using base::Code;
using base::SteadyPoint;
using nlohmann::json;
using std::chrono::milliseconds;

}  // namespace

bool Engine::Impl::Harms(const Call& call) const {
  return call.kill_at && (!call.heard || call.in.await_end || clock_.Steady() >= call.deadline);
}

bool Engine::Impl::Replacing() const {
  return std::any_of(calls_.begin(), calls_.end(),
                     [this](const auto& c) { return c.second->stuck && Harms(*c.second); });
}

bool Engine::Impl::TakesCalls() const {
  return worker_ && worker_ready_ && !expected_exit_ &&
         std::none_of(calls_.begin(), calls_.end(),
                      [this](const auto& c) { return Harms(*c.second); });
}

void Engine::Impl::Admit(EngineCall call) {
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

void Engine::Impl::AdmitWaiting() {
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

void Engine::Impl::Refuse(const EngineCall& call, bool draining) {
  Outcome outcome;
  outcome.error =
      draining
          ? MakeError(Code::kUnavailable, "Draining",
                      "this replica takes no calls now; the handler did not begin")
          : MakeError(Code::kUnavailable, "Busy",
                      fmt::format(
                          "this replica runs {} calls, its concurrency; the handler did not begin",
                          options_.concurrency));
  call.done(std::move(outcome));
}

void Engine::Impl::RefuseWaiting() {
  for (auto& waiting : std::exchange(waiting_, {})) Refuse(waiting.in, true);
}

void Engine::Impl::Dispatch(EngineCall in, SteadyPoint since) {
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
  placed.gone.emplace(placed.in.gone, [this, id = placed.id] { Post([this, id] { OnGone(id); }); });
}

void Engine::Impl::Finish(Call& call, Outcome outcome) {
  // A line that a child of the call has not ended must not become part of the next call's.
  if (worker_ && options_.concurrency == 1) worker_->EndLines();
  outcome.log_tail = call.ring.ToVector();
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

void Engine::Impl::AnswerEarly(Call& call, base::Error error) {
  Outcome outcome;
  outcome.error = std::move(error);
  outcome.log_tail = call.ring.ToVector();
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

void Engine::Impl::OnResult(Call& call, const std::string& payload) {
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

void Engine::Impl::OnError(Call& call, WorkerError error) {
  if (call.answered) return Finish(call, {});
  worker_->ReadPipes();
  Outcome outcome;
  outcome.error =
      base::Error{Code::kFailedPrecondition, error.message, "", "HandlerError", error.source};
  outcome.trace = error.trace;
  // The log has the traceback too; the call's own tail does not, its answer shows it apart.
  const auto& lines = error.trace.empty() ? std::vector<std::string>{error.message} : error.trace;
  for (const auto& line : lines) {
    tail_.Add(line);
    log_.Write("stderr", call.in.request_id, line);
  }
  Finish(call, std::move(outcome));
}

void Engine::Impl::OnGone(int64_t id) {
  const auto it = calls_.find(id);
  if (it == calls_.end() || it->second->answered) return;
  AnswerEarly(*it->second,
              MakeError(Code::kCancelled, "Timeout", "the caller has gone; the call was ended"));
}

void Engine::Impl::FailAll(const base::Error& error) {
  while (!calls_.empty()) {
    Outcome outcome;
    outcome.error = error;
    Finish(*calls_.begin()->second, std::move(outcome));
  }
}

void Engine::Impl::DropCalls() {
  FailAll(MakeError(Code::kInternal, "ReplicaDied",
                    "the function's process was ended because another of its calls did not end "
                    "when its time was up"));
}

}  // namespace sless::runner
