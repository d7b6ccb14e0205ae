#include "server/reconcile/function_reconciler.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/api/error_body.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/domain/function_lifecycle.h"
#include "server/store/typed.h"

namespace sless::reconcile {
namespace {

using std::chrono::milliseconds;

// Between two tries of what failed through no fault of the function. A start is awaited by someone,
// and has to come about within Options::start_limit.
constexpr milliseconds kFirstWait{500};
constexpr milliseconds kLongestWaitOfBuild{60'000};
constexpr milliseconds kLongestWaitOfStart{10'000};

milliseconds RetryWait(int failures, milliseconds longest) {
  auto wait = kFirstWait;
  for (int i = 0; i < failures && wait < longest; ++i) wait *= 2;
  return std::min(wait, longest);
}

/// Errors that say nothing about the user's function: the same may well work later.
bool Transient(base::Code code) {
  using base::Code;
  return code == Code::kUnavailable || code == Code::kInternal ||
         code == Code::kResourceExhausted || code == Code::kCancelled || code == Code::kAborted;
}

/// "Known" is private to the class.
template <class Known>
void ForgetFailures(Known& known) {
  known.transient_failures = 0;
  known.transient_note.clear();
  known.retry_at = {};
}

/// The text that the stored spec of a trigger of this function has somewhere. Made by what writes
/// specs (store::ToStored), so that white space and escapes are the same.
std::string FunctionMember(const std::string& function) {
  const auto object = base::DumpJson(nlohmann::json{{"function", function}});
  return object.substr(1, object.size() - 2);
}

/// The triggers of one function. Others are told apart by their text, which is much cheaper than
/// reading them: a namespace may have thousands, and each of its functions asks.
base::Result<std::vector<api::Trigger>> TriggersOf(const store::ObjectStore& store,
                                                   const std::string& ns,
                                                   const std::string& function) {
  const std::string mark = FunctionMember(function);
  std::vector<api::Trigger> triggers;
  store::ListQuery query{std::string(api::kKindTrigger), ns, "", 1000, ""};
  do {
    ASSIGN_OR_RETURN(auto page, store.List(query));
    for (const auto& item : page.items) {
      if (!base::Contains(item.spec_json, mark)) continue;
      ASSIGN_OR_RETURN(auto trigger, store::FromStored<api::Trigger>(item));
      if (trigger.spec.function == function && trigger.metadata.deletion_requested_at.empty())
        triggers.push_back(std::move(trigger));
    }
    query.continue_after = std::move(page.continue_after);
  } while (!query.continue_after.empty());
  return triggers;
}

void CopyVolatile(const api::FunctionStatus& from, api::FunctionStatus& to) {
  to.ready_replicas = from.ready_replicas;
  to.restarts = from.restarts;
  to.note = from.note;
}

}  // namespace

const Revision* FunctionReconciler::View::Find(int64_t number) const {
  for (const auto& revision : revisions) {
    if (revision.spec.number == number) return &revision;
  }
  return nullptr;
}

FunctionReconciler::Known& FunctionReconciler::KnownOf(const api::ObjectKey& key) {
  return *memory_.With([&](Memory& memory) {
    auto& slot = memory.known[key];
    if (!slot) {
      const auto departed = memory.departed.extract(key);
      slot = std::make_unique<Known>();
      if (departed) slot->least_revision = departed.mapped().least_revision;
    }
    return slot.get();
  });
}

size_t FunctionReconciler::Remembered() const {
  return memory_.With(
      [](const Memory& memory) { return memory.known.size() + memory.departed.size(); });
}

base::Result<Next> FunctionReconciler::Reconcile(const api::ObjectKey& key) {
  auto function = store::GetTyped<api::Function>(deps_.store, key.ns, key.name);
  if (!function && function.error().code == base::Code::kNotFound) return Gone(key);
  if (!function) return base::Err(function.error());

  Known& known = KnownOf(key);
  if (!function->metadata.deletion_requested_at.empty()) {
    RETURN_IF_ERROR(Delete(*function, known));
    return Gone(key);
  }
  if (known.uid != function->metadata.uid) {
    known.uid = function->metadata.uid;
    known.published.reset();
    Dependents(key.ns, key.name);
  }

  ASSIGN_OR_RETURN(auto triggers, TriggersOf(deps_.store, key.ns, key.name));
  ASSIGN_OR_RETURN(auto revisions, store::ListTyped<Revision>(deps_.store, key.ns, key.name + "."));
  View view{std::move(*function), std::move(triggers), std::move(revisions), known};
  RETURN_IF_ERROR(RecordSwitch(view));

  const std::string input = domain::RevisionInput(view.function.spec);
  const auto decision = DecideFunction(view.function, input, view.revisions, known.least_revision);
  const auto layers = PublishServing(view, decision);
  if (layers == Layers::kBuilding) {  // its end comes back here
    if (known.published->revision || view.function.status.phase != "Ready") return Next::Done();
    return WriteStatus(
        view, "Building", [](api::FunctionStatus&) {}, Next::Done());
  }
  // Where something new is on its way, that comes first.
  const bool lost = layers != Layers::kThere && !IsUnderway(decision.step);
  if (!lost) DropOthers(view, decision.number);
  const Revision* target = view.Find(decision.number);
  if (lost) {
    return Lost(view, layers == Layers::kLost,
                decision.step == FunctionStep::kFailed ? target->status.failure : std::nullopt);
  }
  if (const auto wait = Wait(known);
      wait && (decision.step == FunctionStep::kBuild || decision.step == FunctionStep::kPrepare)) {
    return Next::After(*wait);
  }
  switch (decision.step) {
    case FunctionStep::kServe:
      return Serve(view);
    case FunctionStep::kCreate:
      return Create(view, decision.number, input);
    case FunctionStep::kBuild:
      return Build(view, *target);
    case FunctionStep::kPrepare:
      return Prepare(view, *target);
    case FunctionStep::kFailed:
      return Failed(view, *target->status.failure);
  }
  return Next::Done();
}

base::Result<Next> FunctionReconciler::Gone(const api::ObjectKey& key) {
  deps_.builds.Forget(key.ns, key.name);
  deps_.serving.Remove(key.ns, key.name);
  routed_.With([&](auto& routed) { routed.erase({key.ns, key.name}); });
  const auto now = deps_.clock.Steady();
  const auto known = memory_.With([&](Memory& memory) {
    auto node = memory.known.extract(key);
    std::erase_if(memory.departed,
                  [&](const auto& entry) { return now - entry.second.at > options_.drained; });
    if (node) memory.departed[key] = {node.mapped()->least_revision, now};
    return node;
  });
  if (known && !known.mapped()->uid.empty()) Dependents(key.ns, key.name);
  return Next::Done();
}

base::Status FunctionReconciler::Delete(const api::Function& function, Known& known) {
  const auto& [ns, name] = std::pair(function.metadata.ns, function.metadata.name);
  deps_.builds.Forget(ns, name);
  deps_.serving.Remove(ns, name);
  ASSIGN_OR_RETURN(const auto revisions, store::ListTyped<Revision>(deps_.store, ns, name + "."));
  for (const auto& revision : revisions) {
    known.least_revision = std::max(known.least_revision, revision.spec.number + 1);
    const auto gone =
        deps_.store.Delete(store::KeyOf<Revision>(ns, revision.metadata.name), std::nullopt);
    if (!gone && gone.error().code != base::Code::kNotFound) return gone;
  }
  deps_.logs.Remove(ns, name, known.least_revision - 1);
  const auto gone = deps_.store.Delete(store::KeyOf<api::Function>(ns, name), std::nullopt);
  if (!gone && gone.error().code != base::Code::kNotFound) return gone;
  deps_.log.Info("function deleted", {{"function", ns + "/" + name}});
  return base::Ok();
}

void FunctionReconciler::DropOthers(View& view, int64_t target) {
  const int64_t building = deps_.builds.Current(view.ns(), view.name());
  if (building != 0 && building != target) deps_.builds.Forget(view.ns(), view.name());
  if (view.known.preparing != 0 && view.known.preparing != target) {
    deps_.serving.Abandon({view.ns(), view.name(), view.known.preparing});
    view.known.preparing = 0;
  }
}

// A switch whose status could not be written (a full disk) is written before all else: whoever
// went by the status would bring back the revision that served before.
base::Status FunctionReconciler::RecordSwitch(View& view) {
  const auto& published = view.known.published;
  if (!published || !published->revision) return base::Ok();
  const auto* serving = view.Find(published->revision->revision);
  if (serving == nullptr || serving->spec.number <= view.function.status.revision)
    return base::Ok();
  ASSIGN_OR_RETURN(
      view.function,
      store::MutateStatus<api::Function>(
          deps_.store, view.ns(), view.name(), [&](api::Function& function) -> base::Status {
            if (function.metadata.uid != view.function.metadata.uid)
              return base::Err(base::Code::kAborted, "another function of that name");
            function.status.revision = serving->spec.number;
            function.status.serving = serving->spec.function;
            function.status.last_built_at = serving->status.built_at;
            return base::Ok();
          }));
  return base::Ok();
}

base::Result<Next> FunctionReconciler::Serve(View& view) {
  const Revision& serving = *view.Find(view.function.status.revision);
  // After a crash between the switch and this, or a failed write, the revision may not say yet that
  // it was ready.
  if (serving.status.phase != "Ready") {
    RETURN_IF_ERROR(store::MutateStatus<Revision>(deps_.store, view.ns(), serving.metadata.name,
                                                  [](Revision& revision) {
                                                    revision.status.phase = "Ready";
                                                    revision.status.failure.reset();
                                                    return base::Ok();
                                                  }));
  }
  ForgetFailures(view.known);
  ASSIGN_OR_RETURN(const auto next, WriteStatus(
                                        view, "Ready",
                                        [&](api::FunctionStatus& status) {
                                          status.failure.reset();
                                          status.serving = view.function.spec;
                                          status.last_built_at = serving.status.built_at;
                                        },
                                        Next::Done()));
  RETURN_IF_ERROR(Prune(view, serving.spec.number));
  return next;
}

// What serves by the status cannot be started: no client may take the function for ready. One that
// uploads the code again and asks for another try brings it back, and so does time. `tried`: just
// now. `failure`: that of the revision that was to replace it.
base::Result<Next> FunctionReconciler::Lost(View& view, bool tried,
                                            const std::optional<api::Failure>& failure) {
  const auto& error = view.known.lost->second;
  if (Transient(error.code)) {
    if (!tried) return Next::After(Wait(view.known).value_or(milliseconds(0)));
    return TryAgain(view, failure ? "Failed" : "Deploying", error,
                    RetryWait(view.known.transient_failures, kLongestWaitOfBuild), failure);
  }
  if (tried) {
    ForgetFailures(view.known);
    view.known.retry_at = deps_.clock.Steady() + kLongestWaitOfBuild;
  }
  return WriteStatus(
      view, "Failed",
      [&](api::FunctionStatus& status) {
        status.failure = failure.value_or(api::FailureOf(error));
        SetServing(view, status);
      },
      Next::After(Wait(view.known).value_or(milliseconds(0))));
}

std::optional<milliseconds> FunctionReconciler::Wait(const Known& known) const {
  const auto left = known.retry_at - deps_.clock.Steady();
  if (left <= base::SteadyPoint::duration(0)) return std::nullopt;
  return std::chrono::duration_cast<milliseconds>(left) + milliseconds(1);
}

// Beside a failure: what is published serves, perhaps by replicas that need no layers any more.
void FunctionReconciler::SetServing(View& view, api::FunctionStatus& status) {
  const auto* serving = view.Find(status.revision);
  const bool serves = serving != nullptr && view.known.published && view.known.published->revision;
  if (serves && !status.serving) status.serving = LastServing(view, *serving);
  if (serves || !status.serving) return;
  view.known.unserved = std::move(status.serving);
  status.serving.reset();
}

base::Result<Next> FunctionReconciler::Create(View& view, int64_t number,
                                              const std::string& input) {
  Revision revision;
  revision.metadata.ns = view.ns();
  revision.metadata.name = RevisionName(view.name(), number);
  revision.spec = {number, input, view.function.metadata.generation, view.function.spec};
  if (const auto built = FindBuilt(view.function.spec, view.revisions);
      built && LayersPresent(*built, deps_.layers_dir)) {
    revision.status.phase = "Built";
    revision.status.code_dir = built->status.code_dir;
    revision.status.deps_dir = built->status.deps_dir;
    revision.status.built_at = built->status.built_at;
  }
  const auto created = store::CreateTyped(deps_.store, revision);
  if (!created && created.error().code != base::Code::kAlreadyExists)
    return base::Err(created.error());
  view.revisions.push_back(revision);
  view.known.least_revision = std::max(view.known.least_revision, number + 1);
  ForgetFailures(view.known);
  deps_.log.Info("revision made", {{"function", view.ns() + "/" + view.name()},
                                   {"revision", number},
                                   {"generation", view.function.metadata.generation},
                                   {"builds", revision.status.phase == "Pending"}});
  return WriteStatus(
      view, revision.status.phase == "Pending" ? "Building" : "Deploying",
      [](api::FunctionStatus& status) { status.failure.reset(); }, Next::After(milliseconds(0)));
}

base::Result<Next> FunctionReconciler::Build(View& view, const Revision& revision) {
  const auto outcome =
      deps_.builds.Ensure(KeyOfRevision(revision, view.name()), revision.spec.function);
  if (!outcome) {
    return WriteStatus(
        view, "Building", [](api::FunctionStatus& status) { status.failure.reset(); },
        Next::Done());
  }
  if (*outcome) {
    ForgetFailures(view.known);
    const auto& layers = **outcome;
    RETURN_IF_ERROR(store::MutateStatus<Revision>(
        deps_.store, view.ns(), revision.metadata.name, [&](Revision& built) {
          built.status.phase = "Built";
          built.status.code_dir = layers.code_dir;
          built.status.deps_dir = layers.deps_dir;
          built.status.built_at =
              BuiltAt(revision.spec.function, view.revisions, base::FormatTime(deps_.clock.Now()));
          return base::Ok();
        }));
    deps_.builds.Forget(view.ns(), view.name());
    return WriteStatus(
        view, "Deploying", [](api::FunctionStatus& status) { status.failure.reset(); },
        Next::After(milliseconds(0)));
  }
  deps_.builds.Forget(view.ns(), view.name());
  const auto& error = outcome->error();
  if (Transient(error.code)) {
    return TryAgain(view, "Building", error,
                    RetryWait(view.known.transient_failures, kLongestWaitOfBuild));
  }
  return Fail(view, revision, api::FailureOf(error));
}

base::Result<Next> FunctionReconciler::Prepare(View& view, const Revision& revision) {
  if (!LayersPresent(revision, deps_.layers_dir)) {
    RETURN_IF_ERROR(store::MutateStatus<Revision>(deps_.store, view.ns(), revision.metadata.name,
                                                  [](Revision& lost) {
                                                    lost.status.phase = "Pending";
                                                    return base::Ok();
                                                  }));
    return Next::After(milliseconds(0));
  }
  const auto key = KeyOfRevision(revision, view.name());
  if (view.known.preparing != key.revision) {
    view.known.preparing = key.revision;
    view.known.start_by = deps_.clock.Steady() + options_.start_limit;
  }
  const auto spec = ReplicaSpecOf(revision);
  const auto scaling = ScalingFor(view.function.spec, view.triggers);
  const auto prepared = deps_.serving.Prepare(key, spec, scaling);
  const auto now = deps_.clock.Steady();
  const bool late = now >= view.known.start_by;
  const auto wait = RetryWait(view.known.transient_failures, kLongestWaitOfStart);
  if (!prepared) {
    if (Transient(prepared.error().code) && !late)
      return TryAgain(view, "Deploying", prepared.error(), wait);
    return Fail(view, revision, api::FailureOf(prepared.error()));
  }
  if (prepared->readiness == gateway::Readiness::kFailed) {
    auto failure = prepared->failure.value_or(
        api::Failure{.reason = "StartFailed", .message = "it did not start"});
    // The machine has no process or memory left now: no fault of the function. Serving keeps a
    // failure, so this is the only one to try again, as long as there is time for one more start.
    if (failure.reason == "NoResources" && now + wait < view.known.start_by) {
      deps_.serving.Abandon(key);
      return TryAgain(view, "Deploying", {base::Code::kUnavailable, failure.message, "", "", {}},
                      wait);
    }
    return Fail(view, revision, std::move(failure));
  }
  if (prepared->readiness == gateway::Readiness::kStarting) {
    if (late) {
      api::Failure failure;
      failure.reason = "StartTimeout";
      failure.message = fmt::format("the new revision was not ready {} s after its start",
                                    options_.start_limit.count());
      return Fail(view, revision, std::move(failure));
    }
    return WriteStatus(
        view, "Deploying", [](api::FunctionStatus& status) { status.failure.reset(); },
        Next::After(options_.poll));
  }

  // The switch comes before the status: who reads Ready is answered by the new revision.
  gateway::FunctionRoute route{view.ns(), view.name(),
                               key,       spec,
                               scaling,   view.function.spec.replicas == 0,
                               "",        HttpRoutesOf(view.triggers)};
  view.known.preparing = 0;
  ForgetFailures(view.known);
  Publish(view, std::move(route));
  RETURN_IF_ERROR(store::MutateStatus<Revision>(deps_.store, view.ns(), revision.metadata.name,
                                                [](Revision& ready) {
                                                  ready.status.phase = "Ready";
                                                  return base::Ok();
                                                }));
  deps_.log.Info("function ready",
                 {{"function", view.ns() + "/" + view.name()}, {"revision", key.revision}});
  return WriteStatus(
      view, "Ready",
      [&](api::FunctionStatus& status) {
        status.failure.reset();
        status.revision = key.revision;
        status.serving = view.function.spec;
        status.last_built_at = revision.status.built_at;
      },
      Next::After(milliseconds(0)));
}

base::Result<Next> FunctionReconciler::Fail(View& view, const Revision& revision,
                                            api::Failure failure) {
  RETURN_IF_ERROR(store::MutateStatus<Revision>(deps_.store, view.ns(), revision.metadata.name,
                                                [&](Revision& failed) {
                                                  failed.status.phase = "Failed";
                                                  failed.status.failure = failure;
                                                  failed.status.retry = RetryOf(view.function);
                                                  return base::Ok();
                                                }));
  if (view.known.preparing == revision.spec.number) {
    deps_.serving.Abandon(KeyOfRevision(revision, view.name()));
    view.known.preparing = 0;
  }
  // Not the message: it may be what the function's code said, with a value of its environment.
  deps_.log.Info("revision failed", {{"function", view.ns() + "/" + view.name()},
                                     {"revision", revision.spec.number},
                                     {"reason", failure.reason},
                                     {"file", failure.file},
                                     {"line", failure.line}});
  if (view.function.status.revision == 0) {
    // Nothing serves: who calls shall read why.
    auto route = view.known.published.value_or(gateway::FunctionRoute{});
    route.not_ready_reason = "the function failed: " + failure.message;
    Publish(view, std::move(route));
  }
  return Failed(view, failure);
}

base::Result<Next> FunctionReconciler::Failed(View& view, const api::Failure& failure) {
  ForgetFailures(view.known);
  return WriteStatus(
      view, "Failed",
      [&](api::FunctionStatus& status) {
        status.failure = failure;
        SetServing(view, status);
      },
      Next::Done());
}

base::Result<Next> FunctionReconciler::TryAgain(View& view, const std::string& phase,
                                                const base::Error& error, milliseconds wait,
                                                const std::optional<api::Failure>& failure) {
  ++view.known.transient_failures;
  view.known.retry_at = deps_.clock.Steady() + wait;
  view.known.transient_note =
      fmt::format("try {} failed: {}", view.known.transient_failures, error.message);
  deps_.log.Warn("step will be tried again", {{"function", view.ns() + "/" + view.name()},
                                              {"phase", phase},
                                              {"error", base::ToString(error)},
                                              {"wait_ms", wait.count()}});
  return WriteStatus(
      view, phase, [&](api::FunctionStatus& status) { status.failure = failure; },
      Next::After(wait));
}

base::Result<Next> FunctionReconciler::WriteStatus(
    View& view, const std::string& phase, const std::function<void(api::FunctionStatus&)>& change,
    Next next) {
  const auto load = deps_.serving.Observe(view.ns(), view.name());
  const auto now = deps_.clock.Steady();
  const auto due = view.known.status_written + options_.status_interval;
  bool deferred = false, written = false;
  const auto done = store::MutateStatus<api::Function>(
      deps_.store, view.ns(), view.name(), [&](api::Function& function) {
        if (function.metadata.uid != view.function.metadata.uid)
          return base::Status(base::Err(base::Code::kNotFound, "another function of that name"));
        const auto before = function.status;
        auto& status = function.status;
        status.phase = phase;
        status.observed_generation = view.function.metadata.generation;
        status.observed_retry = RetryOf(view.function);
        status.invoke_url = deps_.external_url + "/v1/namespaces/" + view.ns() + "/functions/" +
                            view.name() + "/invoke";
        for (const auto& revision : view.revisions)
          status.latest_revision = std::max(status.latest_revision, revision.spec.number);
        change(status);
        status.ready_replicas = load.ready;
        status.restarts = load.restarts;
        status.note = !view.known.transient_note.empty() ? view.known.transient_note : load.note;
        auto steady = status;
        CopyVolatile(before, steady);
        // Counts that rise and fall with the load must not fill the disk with writes.
        deferred = steady == before && !(status == before) && now < due;
        if (deferred) status = before;
        written = !(status == before);
        return base::Ok();
      });
  if (!done && done.error().code != base::Code::kNotFound) return base::Err(done.error());
  if (written) view.known.status_written = now;
  if (deferred) {
    const auto left = std::chrono::duration_cast<milliseconds>(due - now) + milliseconds(1);
    next.after = next.after ? std::min(*next.after, left) : left;
  }
  return next;
}

base::Status FunctionReconciler::Prune(View& view, int64_t serving) {
  for (const int64_t number :
       Superseded(view.revisions, serving, serving, options_.keep_revisions)) {
    const auto gone = deps_.store.Delete(
        store::KeyOf<Revision>(view.ns(), RevisionName(view.name(), number)), std::nullopt);
    if (!gone && gone.error().code != base::Code::kNotFound) return gone;
  }
  return base::Ok();
}

void FunctionReconciler::Dependents(const std::string& ns, const std::string& function) {
  const auto triggers = TriggersOf(deps_.store, ns, function);
  if (!triggers) return;  // the resync comes by
  for (const auto& trigger : *triggers)
    deps_.enqueue(store::KeyOf<api::Trigger>(ns, trigger.metadata.name));
}

}  // namespace sless::reconcile
