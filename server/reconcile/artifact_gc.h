#pragma once

#include <chrono>

#include "client/base/clock.h"
#include "client/base/log.h"
#include "server/artifact/artifact_store.h"
#include "server/build/builder.h"
#include "server/reconcile/build_runner.h"
#include "server/runtime/runtime.h"
#include "server/store/object_store.h"

namespace sless::reconcile {

/// Removes code and layers that nothing needs any more. Needed is what a function's spec, the spec
/// that serves it, a Revision object, a build or a replica (also one that drains) refers to, and
/// what is younger than kMinAge (an upload whose function is not written yet). Thread safety: one
/// call at a time.
class ArtifactGc {
 public:
  static constexpr std::chrono::hours kMinAge{1};
  struct Deps {
    store::ObjectStore& store;
    artifact::ArtifactStore& artifacts;
    build::Builder& builder;
    BuildRunner& builds;
    const runtime::Runtime& runtime;
    const base::Clock& clock;
    base::Logger& log;
  };
  explicit ArtifactGc(Deps deps) : deps_(deps) {}
  base::Status CollectArtifacts();
  /// While a build runs nothing is collected: the next round will.
  base::Status CollectLayers();

 private:
  const Deps deps_;
};

}  // namespace sless::reconcile
