#pragma once

#include <string>
#include <utility>
#include <vector>

#include "client/api/job.h"
#include "client/base/clock.h"
#include "client/base/log.h"
#include "server/reconcile/end_runs.h"
#include "server/reconcile/reconciler.h"
#include "server/store/object_store.h"

namespace sless::reconcile {

/// Annotation of a Run whose job was deleted: RFC 3339 time of the deletion.
inline constexpr std::string_view kOrphanedAnnotation = "sless.dev/orphaned-at";

/// Makes Run objects for jobs and shows in a job's status how its run goes.
///
/// A job is gone, and a job whose runId is 0 again is Skipped, only when no call of it runs any
/// more. The failed newest run of a deleted job stays for kKeepOrphan: a job that comes again under
/// the same name and runId (Terraform replaces a tainted resource) goes on with the next attempt
/// instead of starting the count anew.
class JobReconciler final : public Reconciler {
 public:
  static constexpr std::chrono::hours kKeepOrphan{24};
  static constexpr size_t kKeepRuns = 100;  ///< ended runs that stay listed, per job

  struct Deps {
    store::ObjectStore& store;
    const base::Clock& clock;
    base::Logger& log;
    CancelRun cancel;
  };
  explicit JobReconciler(Deps deps) : deps_(std::move(deps)) {}

  base::Result<Next> Reconcile(const api::ObjectKey& key) override;

  /// Removes kept runs of deleted jobs after their time.
  base::Status CollectOrphans();

 private:
  base::Status Delete(const api::Job& job, std::vector<api::Run> runs);
  /// Takes over or drops what a deleted job of this name left.
  base::Status Adopt(const api::Job& job, std::vector<api::Run>& runs);
  base::Status Prune(const std::vector<api::Run>& runs);

  const Deps deps_;
};

}  // namespace sless::reconcile
