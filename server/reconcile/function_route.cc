// What the gateway is told of a function: the revision that serves, with the triggers of now.

#include "server/reconcile/function_reconciler.h"
#include "server/store/typed.h"

namespace sless::reconcile {

FunctionReconciler::Layers FunctionReconciler::PublishServing(View& view,
                                                              const FunctionDecision& decision) {
  auto& status = view.function.status;
  const auto* serving = status.revision > 0 ? view.Find(status.revision) : nullptr;
  gateway::FunctionRoute route;
  route.ns = view.ns();
  route.name = view.name();
  route.http = HttpRoutesOf(view.triggers);
  if (serving == nullptr) {
    route.switched_off = view.function.spec.replicas == 0;
    route.scaling = ScalingFor(view.function.spec, view.triggers);
    const auto* target = view.Find(decision.number);
    route.not_ready_reason = decision.step == FunctionStep::kFailed && target->status.failure
                                 ? "the function failed: " + target->status.failure->message
                                 : "the function is being built";
    Publish(view, std::move(route));
    return Layers::kThere;
  }
  const auto key = KeyOfRevision(*serving, view.name());
  const bool published = view.known.published && view.known.published->revision == key;
  auto layers = Layers::kThere;
  // A retry of what serves looks closer at its layers than we do.
  const bool retry =
      decision.step == FunctionStep::kServe && status.observed_retry != RetryOf(view.function);
  const bool lost = IsLost(view, *serving);
  if (retry || lost || !LayersPresent(*serving, deps_.layers_dir)) {
    // One function has one build at a time, and that of a new revision comes first.
    const bool underway = IsUnderway(decision.step);
    const bool waits = lost && !retry && deps_.clock.Steady() < view.known.retry_at;
    if (underway || waits) {
      layers = underway && published ? Layers::kThere : Layers::kStillLost;
    } else {
      layers = Restore(view, *serving);
    }
    // What is published has replicas, perhaps, that go on without the folders.
    if (layers != Layers::kThere && !published) {
      route.not_ready_reason =
          layers != Layers::kBuilding && IsLost(view, *serving)
              ? "its layers cannot be built again: " + view.known.lost->second.message
              : "its layers are being built again";
      Publish(view, std::move(route));
      return layers;
    }
  }

  const auto scaled_by = decision.step == FunctionStep::kServe
                             ? view.function.spec
                             : status.serving.value_or(LastServing(view, *serving));
  route.revision = key;
  route.spec = ReplicaSpecOf(*serving);
  route.scaling = ScalingFor(scaled_by, view.triggers);
  route.switched_off = scaled_by.replicas == 0;
  route.not_ready_reason.clear();
  Publish(view, std::move(route));
  return layers;
}

// The layers of the serving revision are gone (a restored backup, an emptied cache): made again
// from the same source, with no change of revision.
FunctionReconciler::Layers FunctionReconciler::Restore(View& view, const Revision& serving) {
  auto& lost = view.known.lost;
  const auto key = KeyOfRevision(serving, view.name());
  const auto outcome = deps_.builds.Ensure(key, serving.spec.function);
  if (!outcome) return Layers::kBuilding;
  deps_.builds.Forget(key.ns, key.name);
  auto error = *outcome ? base::Error{} : outcome->error();
  if (*outcome) {
    const auto written = store::MutateStatus<Revision>(
        deps_.store, key.ns, serving.metadata.name, [&](Revision& revision) {
          revision.status.code_dir = (*outcome)->code_dir;
          revision.status.deps_dir = (*outcome)->deps_dir;
          return base::Ok();
        });
    if (written) {
      for (auto& revision : view.revisions) {
        if (revision.spec.number == written->spec.number) revision = *written;
      }
      lost.reset();
      return Layers::kThere;
    }
    error = written.error();
  }
  // Nothing to look at them with, or to make them of: they may be well all the same.
  if (error.reason == "SourceMissing" && LayersPresent(serving, deps_.layers_dir)) {
    lost.reset();
    return Layers::kThere;
  }
  lost = {serving.spec.number, error};
  deps_.log.Warn("layers of the serving revision cannot be built again",
                 {{"revision", key.ToString()}, {"error", base::ToString(error)}});
  return Layers::kLost;
}

bool FunctionReconciler::IsLost(const View& view, const Revision& serving) {
  return view.known.lost && view.known.lost->first == serving.spec.number;
}

// Of a revision that is kept while nothing serves by the status.
api::FunctionSpec FunctionReconciler::LastServing(const View& view, const Revision& serving) {
  return view.known.unserved.value_or(serving.spec.function);
}

void FunctionReconciler::Publish(View& view, gateway::FunctionRoute route) {
  if (view.known.published == route) return;
  view.known.published = route;
  routed_.With([&](auto& routed) { routed[{view.ns(), view.name()}] = route.http; });
  deps_.log.Info("route published", {{"function", view.ns() + "/" + view.name()},
                                     {"revision", route.revision ? route.revision->revision : 0},
                                     {"http_triggers", route.http.size()}});
  deps_.serving.Publish(std::move(route));
  for (const auto& trigger : view.triggers)
    deps_.enqueue(store::KeyOf<api::Trigger>(view.ns(), trigger.metadata.name));
}

bool FunctionReconciler::Routed(const std::string& ns, const std::string& function,
                                const gateway::HttpRoute& route) const {
  return routed_.With([&](const auto& routed) {
    const auto it = routed.find({ns, function});
    return it != routed.end() &&
           std::find(it->second.begin(), it->second.end(), route) != it->second.end();
  });
}

}  // namespace sless::reconcile
