#include "server/reconcile/artifact_gc.h"

#include <set>
#include <string>

#include "client/api/function.h"
#include "server/reconcile/revision.h"
#include "server/store/typed.h"

namespace sless::reconcile {

base::Status ArtifactGc::CollectArtifacts() {
  ASSIGN_OR_RETURN(const auto namespaces, deps_.artifacts.Namespaces());
  for (const auto& ns : namespaces) {
    // Listed before what refers to it: code that comes meanwhile is not on the list.
    ASSIGN_OR_RETURN(const auto artifacts, deps_.artifacts.List(ns));
    std::set<std::string> needed;
    ASSIGN_OR_RETURN(const auto functions, store::ListTyped<api::Function>(deps_.store, ns));
    for (const auto& function : functions) {
      needed.insert(function.spec.source.hash);
      if (function.status.serving) needed.insert(function.status.serving->source.hash);
    }
    ASSIGN_OR_RETURN(const auto revisions, store::ListTyped<Revision>(deps_.store, ns));
    for (const auto& revision : revisions) needed.insert(revision.spec.function.source.hash);
    for (const auto& artifact : artifacts) {
      const auto unused_since = deps_.clock.Now() - kMinAge;
      if (needed.contains(artifact.digest) || artifact.last_used >= unused_since) continue;
      // Asked once more as it is removed: an upload may have been told a moment ago that the code
      // is there.
      RETURN_IF_ERROR(deps_.artifacts.Remove(ns, artifact.digest, unused_since));
      deps_.log.Info("code removed, nothing refers to it",
                     {{"namespace", ns}, {"digest", artifact.digest}});
    }
  }
  return base::Ok();
}

base::Status ArtifactGc::CollectLayers() {
  base::Status status = base::Ok();
  deps_.builds.WhileIdle([&] {
    const auto revisions = store::ListTyped<Revision>(deps_.store, "");
    if (!revisions) {
      status = base::Err(revisions.error());
      return;
    }
    auto in_use = deps_.builds.LayersInUse();
    for (const auto& revision : *revisions) {
      if (!revision.status.code_dir.empty()) in_use.push_back(revision.status.code_dir);
      if (!revision.status.deps_dir.empty()) in_use.push_back(revision.status.deps_dir);
    }
    // After the revisions: none of those that are gone begins a replica any more.
    for (auto& layer : deps_.runtime.LayersInUse()) in_use.push_back(layer);
    status = deps_.builder.Collect(in_use);
  });
  return status;
}

}  // namespace sless::reconcile
