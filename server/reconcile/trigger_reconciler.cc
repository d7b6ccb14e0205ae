#include "server/reconcile/trigger_reconciler.h"

#include <fmt/format.h>

#include "client/api/function.h"
#include "client/api/job.h"
#include "server/store/typed.h"

namespace sless::reconcile {
namespace {

// How soon to look again whether the function's route has the trigger; the function itself calls
// back sooner.
constexpr std::chrono::milliseconds kRoutePoll{200};
// How soon to look again whether the runs of a deleted trigger have ended.
constexpr std::chrono::milliseconds kRunPoll{100};

gateway::HttpRoute RouteOf(const api::Trigger& trigger) {
  return {trigger.metadata.name, trigger.spec.enabled, trigger.spec.http.value_or(api::HttpSpec{})};
}

}  // namespace

base::Result<Next> TriggerReconciler::Reconcile(const api::ObjectKey& key) {
  const auto found = store::GetTyped<api::Trigger>(deps_.store, key.ns, key.name);
  if (!found && found.error().code == base::Code::kNotFound) return Gone(key);
  if (!found) return base::Err(found.error());
  const auto& trigger = *found;
  const auto& spec = trigger.spec;
  const bool http = spec.type == "http";

  if (!trigger.metadata.deletion_requested_at.empty()) {
    deps_.scheduler.Remove(key);
    // Gone means gone: first the route loses it.
    if (http && deps_.routed(key.ns, spec.function, RouteOf(trigger))) {
      TellFunction(key, spec.function);
      return Next::After(kRoutePoll);
    }
    ASSIGN_OR_RETURN(const bool ended, Delete(trigger));
    return ended ? Gone(key) : Next::After(kRunPoll);
  }

  api::TriggerStatus status = trigger.status;
  status.observed_generation = trigger.metadata.generation;
  status.failure.reset();
  status.next_runs.clear();
  status.url = !http ? ""
                     : deps_.external_url + "/fn/" + key.ns + "/" + spec.function +
                           (RouteOf(trigger).spec.path == "/" ? "" : RouteOf(trigger).spec.path);

  const auto function = store::GetTyped<api::Function>(deps_.store, key.ns, spec.function);
  if (!function && function.error().code != base::Code::kNotFound)
    return base::Err(function.error());
  if (!function || !function->metadata.deletion_requested_at.empty()) {
    deps_.scheduler.Remove(key);
    status.phase = "Failed";
    status.failure =
        api::Failure{.reason = "FunctionMissing",
                     .message = fmt::format(
                         "function \"{}\" does not exist in namespace \"{}\"; the trigger starts "
                         "working once it does",
                         spec.function, key.ns)};
    return Write(trigger, std::move(status), Next::Done());
  }
  if (function_of_.With(
          [&](auto& all) { return !all.contains(key) || all[key] != spec.function; })) {
    TellFunction(key, spec.function);
  }
  if (http && !deps_.routed(key.ns, spec.function, RouteOf(trigger))) {
    TellFunction(key, spec.function);
    return Next::After(kRoutePoll);
  }
  if (!spec.enabled) {
    // The function's replicas depend on whether any trigger is enabled, a cron trigger too.
    if (trigger.status.phase != "Disabled") TellFunction(key, spec.function);
    deps_.scheduler.Remove(key);
    // What waits behind a running run is stopped too; the running one ends by itself.
    ASSIGN_OR_RETURN(auto waiting, RunsOf(trigger));
    std::erase_if(waiting, [](const auto& run) { return run.status.phase != "Pending"; });
    RETURN_IF_ERROR(EndRuns(deps_.store, deps_.clock, deps_.cancel, waiting,
                            "the trigger was disabled before the run began"));
    status.phase = "Disabled";
    return Write(trigger, std::move(status), Next::Done());
  }
  if (trigger.status.phase != "Ready") TellFunction(key, spec.function);
  status.phase = "Ready";
  if (http) return Write(trigger, std::move(status), Next::Done());

  api::Trigger wanted = trigger;
  // While its function was missing nothing was missed: it takes up from now.
  if (trigger.status.phase == "Failed")
    wanted.status.last_fire = status.last_fire = base::FormatTime(deps_.clock.Now());
  auto next_runs = deps_.scheduler.Set(wanted);
  if (!next_runs) {
    status.phase = "Failed";
    status.failure = api::Failure{.reason = "BadSchedule", .message = next_runs.error().message};
  } else {
    status.next_runs = std::move(*next_runs);
  }
  return Write(trigger, std::move(status), Next::Done());
}

base::Result<Next> TriggerReconciler::Gone(const api::ObjectKey& key) {
  deps_.scheduler.Remove(key);
  TellFunction(key, "");
  return Next::Done();
}

base::Result<std::vector<api::Run>> TriggerReconciler::RunsOf(const api::Trigger& trigger) const {
  ASSIGN_OR_RETURN(auto runs, store::ListTyped<api::Run>(deps_.store, trigger.metadata.ns,
                                                         trigger.metadata.name + "."));
  std::erase_if(runs, [](const auto& run) { return run.spec.owner_kind != api::kKindTrigger; });
  return runs;
}

base::Result<bool> TriggerReconciler::Delete(const api::Trigger& trigger) {
  const auto& [ns, name] = std::pair(trigger.metadata.ns, trigger.metadata.name);
  ASSIGN_OR_RETURN(auto runs, RunsOf(trigger));
  ASSIGN_OR_RETURN(const bool ended, EndRuns(deps_.store, deps_.clock, deps_.cancel, runs,
                                             "the trigger was deleted before the run ended"));
  if (!ended) return false;
  for (const auto& run : runs) RETURN_IF_ERROR(DeleteRun(deps_.store, run));
  const auto gone = deps_.store.Delete(store::KeyOf<api::Trigger>(ns, name), std::nullopt);
  if (!gone && gone.error().code != base::Code::kNotFound) return base::Err(gone.error());
  return true;
}

void TriggerReconciler::TellFunction(const api::ObjectKey& key, const std::string& function) {
  const auto before = function_of_.With([&](auto& all) {
    auto old = all[key];
    if (function.empty()) {
      all.erase(key);
    } else {
      all[key] = function;
    }
    return old;
  });
  if (!before.empty() && before != function)
    deps_.enqueue(store::KeyOf<api::Function>(key.ns, before));
  if (!function.empty()) deps_.enqueue(store::KeyOf<api::Function>(key.ns, function));
}

base::Result<Next> TriggerReconciler::Write(const api::Trigger& trigger, api::TriggerStatus status,
                                            Next next) {
  const auto& before = trigger.status.last_fire;
  const auto done = store::MutateStatus<api::Trigger>(
      deps_.store, trigger.metadata.ns, trigger.metadata.name, [&](api::Trigger& now) {
        if (now.metadata.uid != trigger.metadata.uid) return base::Ok();
        // The scheduler writes these two; one of its writes may have come in between. It writes
        // next_runs also: where this puts an older one back, the reconcile that this write brings
        // sets it right.
        if (status.last_fire == before) status.last_fire = now.status.last_fire;
        status.skipped = now.status.skipped;
        now.status = status;
        return base::Ok();
      });
  if (!done && done.error().code != base::Code::kNotFound) return base::Err(done.error());
  return next;
}

}  // namespace sless::reconcile
