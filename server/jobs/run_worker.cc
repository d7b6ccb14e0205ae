#include "server/jobs/run_worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "client/api/function.h"
#include "client/base/strings.h"
#include "server/domain/job_lifecycle.h"
#include "server/store/typed.h"

namespace sless::jobs {
namespace {

using std::chrono::milliseconds;

std::string FunctionCause(const std::string& ns, const std::string& function) {
  return "Function " + ns + "/" + function;
}
std::string OwnerCause(const api::Run& run) {
  return run.spec.owner_kind + " " + run.metadata.ns + "/" + run.spec.owner;
}

api::Failure Fail(std::string reason, std::string message) {
  api::Failure failure;
  failure.reason = std::move(reason);
  failure.message = std::move(message);
  return failure;
}

}  // namespace

RunWorker::RunWorker(Deps deps, Options options)
    : deps_(deps),
      options_(std::move(options)),
      queue_(deps.clock, {options_.retry_first, options_.retry_max}) {}

RunWorker::~RunWorker() { Stop(base::Deadline{base::SteadyPoint::min()}); }

base::Status RunWorker::Start() {
  began_ = deps_.clock.Steady();
  subscription_ = deps_.store.Subscribe([this](const store::Change& change) { OnChange(change); });
  ASSIGN_OR_RETURN(const auto runs, store::ListTyped<api::Run>(deps_.store, ""));
  for (const auto& run : runs) {
    if (NextStep(run, options_.instance) != RunStep::kNothing) {
      queue_.Add(store::KeyOf<api::Run>(run.metadata.ns, run.metadata.name));
    }
  }
  for (int i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { Work(); });
  return base::Ok();
}

void RunWorker::Stop(base::Deadline deadline) {
  stop_.request_stop();
  // From here on none begins, so the look below sees all.
  places_.With([](Places& places) { places.closed = true; });
  while (Running() > 0 && !deadline.Passed(deps_.clock)) {
    std::this_thread::sleep_for(std::min(milliseconds(20), deadline.Left(deps_.clock)));
  }
  give_up_.request_stop();
  threads_.clear();
  subscription_.reset();
}

size_t RunWorker::Running() const {
  return places_.With([](const Places& places) { return places.taken.size(); });
}

void RunWorker::OnChange(const store::Change& change) {
  if (change.key.kind == api::kKindFunction)
    return Wake(FunctionCause(change.key.ns, change.key.name));
  if (change.key.kind != api::kKindRun) return;
  if (change.deleted) Cancel(change.key);
  queue_.Add(change.key);
}

void RunWorker::Cancel(const api::ObjectKey& run) {
  auto source = places_.With([&](const Places& places) {
    const auto it = places.taken.find(run);
    return it == places.taken.end() ? std::stop_source(std::nostopstate) : it->second;
  });
  source.request_stop();
}

bool RunWorker::TakePlace(const api::ObjectKey& key, const std::string& function,
                          std::stop_source source) {
  return places_.With([&](Places& places) {
    if (places.closed) return false;
    int& own = places.by_function[function];
    if (own < options_.workers - static_cast<int>(places.taken.size())) {
      ++own;
      places.taken.emplace(key, std::move(source));
      return true;
    }
    if (own == 0) places.by_function.erase(function);
    places.waiting[function].insert(key);
    return false;
  });
}

void RunWorker::LeavePlace(const api::ObjectKey& key, const std::string& function) {
  const auto next = places_.With([&](Places& places) {
    places.taken.erase(key);
    if (const auto it = places.by_function.find(function); --it->second == 0)
      places.by_function.erase(it);
    // One free worker may be the one that any of the functions was short of.
    std::vector<api::ObjectKey> keys;
    for (auto it = places.waiting.begin(); it != places.waiting.end();) {
      keys.push_back(it->second.extract(it->second.begin()).value());
      it = it->second.empty() ? places.waiting.erase(it) : std::next(it);
    }
    return keys;
  });
  for (const auto& waiting : next) queue_.Add(waiting);
}

void RunWorker::Wake(const std::string& cause) {
  const auto keys = waits_.With([&](Waits& waits) {
    const auto it = waits.by_cause.find(cause);
    if (it == waits.by_cause.end()) return std::set<api::ObjectKey>();
    auto found = std::move(it->second);
    waits.by_cause.erase(it);
    for (const auto& key : found) waits.not_before.erase(key);
    return found;
  });
  for (const auto& key : keys) queue_.Add(key);
}

void RunWorker::ForgetWaits(const api::ObjectKey& key) {
  waits_.With([&](Waits& waits) {
    waits.since.erase(key);
    waits.not_before.erase(key);
  });
}

void RunWorker::Work() {
  while (const auto key = queue_.Take(stop_.get_token())) {
    Process(*key);
    queue_.Done(*key);
  }
}

void RunWorker::Process(const api::ObjectKey& key) {
  const auto run = store::GetTyped<api::Run>(deps_.store, key.ns, key.name);
  if (!run) {
    if (run.error().code != base::Code::kNotFound) {
      deps_.log.Warn("run cannot be read",
                     {{"run", key.Id()}, {"error", base::ToString(run.error())}});
      return queue_.Retry(key);
    }
    queue_.Forget(key);
    ForgetWaits(key);
    return;
  }
  switch (NextStep(*run, options_.instance)) {
    case RunStep::kNothing:
      return ForgetWaits(key);
    case RunStep::kOurs:  // its call has not ended: Record writes the end
      return;
    case RunStep::kInterrupted: {
      const auto passed = deps_.clock.Steady() - began_;
      if (passed >= options_.settle) return ProcessEnd(key, RunStep::kInterrupted);
      return queue_.AddAfter(
          key, std::chrono::ceil<milliseconds>(options_.settle - passed) + milliseconds(1));
    }
    case RunStep::kCancelled:
      return ProcessEnd(key, RunStep::kCancelled);
    case RunStep::kStart:
      return ProcessStart(key, *run);
  }
}

void RunWorker::ProcessEnd(const api::ObjectKey& key, RunStep step) {
  bool ours = false;
  const auto done = store::Mutate<api::Run>(deps_.store, key.ns, key.name, [&](api::Run& now) {
    ours = NextStep(now, options_.instance) == step;
    if (!ours) return base::Ok();
    if (step == RunStep::kInterrupted) {
      MarkInterrupted(now, deps_.clock.Now());
    } else {
      MarkCancelled(now, deps_.clock.Now());
    }
    return base::Ok();
  });
  if (!done) return queue_.Retry(key);
  if (ours) Tell(key, *done);  // the write itself brings the key back
}

base::Result<RunWorker::Obstacle> RunWorker::FindObstacle(const api::Run& run) const {
  const auto& ns = run.metadata.ns;
  const auto& name = run.spec.function;
  const auto function = store::GetTyped<api::Function>(deps_.store, ns, name);
  if (!function && function.error().code != base::Code::kNotFound)
    return base::Err(function.error());
  if (!function || !function->metadata.deletion_requested_at.empty()) {
    return Obstacle{
        Fail("FunctionMissing",
             fmt::format("function \"{}\" does not exist in namespace \"{}\"", name, ns)),
        "", ""};
  }
  if (function->spec.replicas == 0) {
    return Obstacle{
        Fail("SwitchedOff",
             fmt::format(
                 "function \"{}\" is switched off (replicas = 0); set replicas above 0, or leave "
                 "it out, to run it",
                 name)),
        "", ""};
  }
  if (function->status.revision == 0) {
    if (function->status.phase == "Failed" &&
        function->status.observed_generation == function->metadata.generation) {
      api::Failure failure = function->status.failure.value_or(api::Failure{});
      failure.message =
          fmt::format("function \"{}\" has never been ready: {}", name, failure.message);
      failure.reason = "FunctionFailed";
      return Obstacle{std::move(failure), "", ""};
    }
    return Obstacle{
        std::nullopt, FunctionCause(ns, name),
        fmt::format("function \"{}\" is not ready yet (phase {})", name, function->status.phase)};
  }
  if (run.spec.serial) {
    ASSIGN_OR_RETURN(const auto siblings,
                     store::ListTyped<api::Run>(deps_.store, ns, run.spec.owner + "."));
    for (const auto& other : siblings) {
      if (other.spec.owner_kind == run.spec.owner_kind && other.spec.owner == run.spec.owner &&
          other.spec.run_id < run.spec.run_id && !domain::HasEnded(other)) {
        return Obstacle{std::nullopt, OwnerCause(run), "an earlier run has not ended"};
      }
    }
  }
  return Obstacle{};
}

void RunWorker::WaitFor(const api::ObjectKey& key, api::Run run, const Obstacle& obstacle) {
  const auto now = deps_.clock.Steady();
  const auto since = waits_.With([&](Waits& waits) {
    waits.by_cause[obstacle.wait_for].insert(key);
    return waits.since.emplace(key, now).first->second;
  });
  // Only the wait for a function has an end: an earlier run ends by itself.
  if (obstacle.wait_for != OwnerCause(run) && now - since > options_.not_ready_limit) {
    const auto text =
        fmt::format("waited {} s: {}", options_.not_ready_limit.count(), obstacle.message);
    bool failed = false;
    const auto done =
        store::Mutate<api::Run>(deps_.store, key.ns, key.name, [&](api::Run& current) {
          failed = NextStep(current, options_.instance) == RunStep::kStart;
          if (failed) MarkFailed(current, Fail("FunctionNotReady", text), true, deps_.clock.Now());
          return base::Ok();
        });
    if (done && failed) return Tell(key, *done);
    ForgetWaits(key);
    if (done) return;
  }
  queue_.AddAfter(key, options_.poll);
}

void RunWorker::ProcessStart(const api::ObjectKey& key, api::Run run) {
  if (stop_.stop_requested()) return;
  // A failed attempt waits its backoff; the write of its end brought the key here at once.
  if (run.status.phase == "Pending" && run.status.failure && run.status.attempt > 0) {
    const auto ended = base::ParseTime(run.status.finished_at);
    auto wait = options_.retry_first;
    for (int64_t i = 1; i < run.status.attempt && wait < options_.retry_max; ++i) wait *= 2;
    wait = std::min(wait, options_.retry_max);
    const auto passed = ended ? deps_.clock.Now() - *ended : base::TimePoint::duration::max();
    if (passed >= base::TimePoint::duration(0) && passed < wait) {
      // One more millisecond: finished_at is cut to whole ones.
      return queue_.AddAfter(
          key, std::chrono::duration_cast<milliseconds>(wait - passed) + milliseconds(1));
    }
  }
  const auto pause = waits_.With([&](Waits& waits) {
    const auto it = waits.not_before.find(key);
    return it == waits.not_before.end() ? base::SteadyPoint::duration(0)
                                        : it->second - deps_.clock.Steady();
  });
  if (pause > base::SteadyPoint::duration(0)) {
    return queue_.AddAfter(key, std::chrono::duration_cast<milliseconds>(pause) + milliseconds(1));
  }
  const auto obstacle = FindObstacle(run);
  if (!obstacle) {
    deps_.log.Warn("run cannot begin",
                   {{"run", key.Id()}, {"error", base::ToString(obstacle.error())}});
    return queue_.Retry(key);
  }
  if (!obstacle->failure && !obstacle->wait_for.empty())
    return WaitFor(key, std::move(run), *obstacle);

  if (!obstacle->failure) return Begin(key, std::move(run));

  MarkFailed(run, *obstacle->failure, true, deps_.clock.Now());
  const auto failed = Lease(key, run);
  if (failed) Tell(key, *failed);
}

std::optional<api::Run> RunWorker::Lease(const api::ObjectKey& key, const api::Run& run) {
  // Written only over exactly what was read: whoever changed the run in between decides anew.
  const auto leased = store::UpdateTyped<api::Run>(deps_.store, run);
  if (!leased) {
    const auto code = leased.error().code;
    if (code == base::Code::kAborted) {
      queue_.Add(key);
    } else if (code != base::Code::kNotFound) {
      queue_.Retry(key);
    }
    return std::nullopt;
  }
  return *leased;
}

// The place comes before the lease, so that Cancel and Stop find whatever is leased.
void RunWorker::Begin(const api::ObjectKey& key, api::Run run) {
  const std::string function = key.ns + "/" + run.spec.function;
  std::stop_source source;
  if (!TakePlace(key, function, source)) return queue_.AddAfter(key, options_.poll * 5);
  MarkStarted(run, options_.instance, base::RandomHex(16), deps_.clock.Now());
  if (const auto leased = Lease(key, run)) Call(key, *leased, source.get_token());
  LeavePlace(key, function);
}

void RunWorker::Call(const api::ObjectKey& key, const api::Run& run, std::stop_token stop) {
  const gateway::EventCall call{run.metadata.ns,
                                run.spec.function,
                                run.spec.event_json,
                                run.status.request_id,
                                run.spec.owner_kind == "Trigger" ? "cron" : "job",
                                stop};
  Record(key, run, deps_.invoker.Invoke(call, give_up_.get_token()));
}

void RunWorker::Tell(const api::ObjectKey& key, const api::Run& run) {
  const std::string result = run.status.failure ? run.status.failure->reason : "ok";
  ForgetWaits(key);
  deps_.log.Info("run attempt ended", {{"run", key.Id()},
                                       {"attempt", run.status.attempt},
                                       {"phase", run.status.phase},
                                       {"result", result},
                                       {"request", run.status.request_id}});
  deps_.metrics
      .Counters("sless_runs_total",
                "Ended attempts of runs by what asked for them and how they ended",
                {"owner", "result"})
      .With({run.spec.owner_kind, result})
      .Add();
  Wake(OwnerCause(run));
}

void RunWorker::Record(const api::ObjectKey& key, const api::Run& leased,
                       const base::Result<gateway::EventResult>& outcome) {
  const bool not_begun = !outcome && outcome.error().code == base::Code::kUnavailable;
  const bool cancelled = !outcome && outcome.error().code == base::Code::kCancelled;
  bool ours = false;
  const auto finish = [&](api::Run& run) -> base::Status {
    ours = false;
    if (run.status.phase != "Running" || run.status.server != options_.instance ||
        run.status.attempt != leased.status.attempt)
      return base::Ok();
    ours = true;
    const auto now = deps_.clock.Now();
    if (not_begun) {
      MarkNotBegun(run);
    } else if (cancelled) {
      MarkInterrupted(run, now);
    } else {
      MarkFinished(run, outcome, now);
    }
    return base::Ok();
  };
  // What the function did must not be forgotten because the disk was full, however long.
  base::Backoff backoff(std::min(milliseconds(100), options_.record_max), options_.record_max);
  int last_tries = 3;
  do {
    const auto done = store::Mutate<api::Run>(deps_.store, key.ns, key.name, finish);
    if (done) {
      if (!not_begun) {
        if (ours) Tell(key, *done);
      } else {
        waits_.With(
            [&](Waits& waits) { waits.not_before[key] = deps_.clock.Steady() + options_.poll; });
        WaitFor(key, *done,
                Obstacle{std::nullopt, FunctionCause(key.ns, leased.spec.function),
                         outcome.error().message});
      }
      return;
    }
    if (done.error().code == base::Code::kNotFound) return Wake(OwnerCause(leased));  // deleted
    deps_.log.Warn("end of a run cannot be recorded",
                   {{"run", key.Id()}, {"error", base::ToString(done.error())}});
  } while (AwaitRecord(backoff, last_tries));
}

bool RunWorker::AwaitRecord(base::Backoff& backoff, int& last_tries) {
  // After a stop the next server finds the run as interrupted.
  const bool stopping = stop_.stop_requested();
  if (stopping && last_tries-- == 0) return false;
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, (stopping ? give_up_ : stop_).get_token(), backoff.Next(),
                 [] { return false; });
  return true;
}

}  // namespace sless::jobs
