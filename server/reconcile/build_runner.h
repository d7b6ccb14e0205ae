#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "client/api/function.h"
#include "client/base/clock.h"
#include "client/base/guarded.h"
#include "client/base/log.h"
#include "server/artifact/artifact_store.h"
#include "server/build/builder.h"
#include "server/invocations/log_store.h"
#include "server/jobs/worker_pool.h"
#include "server/observe/metrics.h"
#include "server/runtime/runtime.h"

namespace sless::reconcile {

/// Runs builds on threads of their own; at most one per function, of its newest revision.
/// Thread safety: all methods may be called from any thread, for one function by one at a time.
class BuildRunner {
 public:
  struct Deps {
    build::Builder& builder;
    artifact::ArtifactStore& artifacts;
    invocations::LogStore& logs;
    const base::Clock& clock;
    base::Logger& log;
    observe::Registry& metrics;
  };
  using Done = std::function<void(const std::string& ns, const std::string& function)>;
  using Outcome = base::Result<build::BuildOutput>;

  BuildRunner(Deps deps, int threads);
  ~BuildRunner();

  /// Called from a build's thread when it ended. Set once, before the first Ensure.
  void OnDone(Done done) { done_ = std::move(done); }

  /// The outcome of the build of this revision; starts it where it does not run yet (and ends that
  /// of another revision), and is empty until it ended. The outcome is kept until Forget. Besides
  /// the builder's errors: kFailedPrecondition, reason "SourceMissing", where the code was not
  /// uploaded, is gone, or was damaged (then it is removed, so that an upload is taken).
  std::optional<Outcome> Ensure(const runtime::RevisionKey& revision,
                                const api::FunctionSpec& spec);
  /// Ends the function's build, forgets its outcome.
  void Forget(const std::string& ns, const std::string& function);
  /// The function's revision that is being built or whose outcome is kept, 0 for none.
  int64_t Current(const std::string& ns, const std::string& function) const;
  /// Layers of outcomes that are kept.
  std::vector<std::string> LayersInUse() const;
  /// Calls `collect` while no build runs; false where one does.
  bool WhileIdle(const std::function<void()>& collect);
  void Stop() { pool_.Stop(); }

 private:
  struct Build {
    int64_t revision = 0;
    std::stop_source stop;
    base::Guarded<std::optional<Outcome>> outcome;
  };
  using Key = std::pair<std::string, std::string>;

  Outcome Run(const runtime::RevisionKey& revision, const api::FunctionSpec& spec,
              std::stop_token stop);
  Outcome DropDamaged(const runtime::RevisionKey& revision, const std::string& hash,
                      const base::Error& error);

  const Deps deps_;
  Done done_;
  base::Guarded<std::map<Key, std::shared_ptr<Build>>> builds_;
  std::shared_mutex layers_;  // shared by builds, alone by the collection of layers
  jobs::WorkerPool pool_;     // last: its threads use all of the above
};

}  // namespace sless::reconcile
