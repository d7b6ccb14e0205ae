#include "server/reconcile/job_reconciler.h"

#include <algorithm>

#include "server/domain/job_lifecycle.h"
#include "server/store/typed.h"

namespace sless::reconcile {
namespace {

bool Orphaned(const api::Run& run) {
  return run.metadata.annotations.contains(std::string(kOrphanedAnnotation));
}

/// Highest runId first.
base::Result<std::vector<api::Run>> RunsOf(const store::ObjectStore& store, const std::string& ns,
                                           const std::string& job) {
  ASSIGN_OR_RETURN(auto runs, store::ListTyped<api::Run>(store, ns, job + "."));
  std::erase_if(runs, [&](const api::Run& run) {
    return run.spec.owner_kind != api::kKindJob || run.spec.owner != job;
  });
  std::sort(runs.begin(), runs.end(),
            [](const auto& a, const auto& b) { return a.spec.run_id > b.spec.run_id; });
  return runs;
}

}  // namespace

base::Result<Next> JobReconciler::Reconcile(const api::ObjectKey& key) {
  auto job = store::GetTyped<api::Job>(deps_.store, key.ns, key.name);
  if (!job && job.error().code == base::Code::kNotFound) return Next::Done();
  if (!job) return base::Err(job.error());
  ASSIGN_OR_RETURN(auto runs, RunsOf(deps_.store, key.ns, key.name));
  if (!job->metadata.deletion_requested_at.empty()) {
    RETURN_IF_ERROR(Delete(*job, runs));
    return Next::Done();
  }
  RETURN_IF_ERROR(Adopt(*job, runs));

  std::optional<api::Run> newest;
  if (!runs.empty()) newest = runs.front();
  auto decision = domain::DecideJob(job->spec, job->status, newest);
  if (decision.cancel_newest && newest) {
    std::vector<api::Run> ending{*newest};
    RETURN_IF_ERROR(EndRuns(deps_.store, deps_.clock, deps_.cancel, ending,
                            "the job's run_id was set to 0 before the run ended"));
    newest = ending.empty() ? std::nullopt : std::optional(ending.front());
    decision = domain::DecideJob(job->spec, job->status, newest);
  }
  if (decision.step == domain::JobStep::kCreateRun) {
    const auto made = store::CreateTyped(deps_.store, domain::MakeJobRun(*job));
    if (made) {
      deps_.log.Info("run made", {{"run", key.ns + "/" + made->metadata.name}});
      newest = *made;
    } else if (made.error().code != base::Code::kAlreadyExists) {
      return base::Err(made.error());
    } else {
      return Next::After(std::chrono::milliseconds(0));  // somebody was quicker: follow that one
    }
  }
  const auto done =
      store::MutateStatus<api::Job>(deps_.store, key.ns, key.name, [&](api::Job& now) {
        if (now.metadata.uid != job->metadata.uid ||
            now.metadata.generation != job->metadata.generation) {
          return base::Status(base::Err(base::Code::kAborted, "the job changed meanwhile"));
        }
        now.status = domain::NextJobStatus(decision, now, newest);
        return base::Ok();
      });
  if (!done)
    return done.error().code == base::Code::kNotFound ? base::Result<Next>(Next::Done())
                                                      : base::Err(done.error());
  RETURN_IF_ERROR(Prune(runs));
  return Next::Done();
}

base::Status JobReconciler::Delete(const api::Job& job, std::vector<api::Run> runs) {
  ASSIGN_OR_RETURN(const bool ended, EndRuns(deps_.store, deps_.clock, deps_.cancel, runs,
                                             "the job was deleted before the run ended"));
  if (!ended) return base::Ok();  // the end of a run comes back here
  for (const auto& run : runs) {
    const bool keep =
        &run == &runs.front() && run.status.phase == "Failed" && run.status.attempt > 0;
    if (!keep) {
      RETURN_IF_ERROR(DeleteRun(deps_.store, run));
      continue;
    }
    if (Orphaned(run)) continue;
    RETURN_IF_ERROR(store::Mutate<api::Run>(
        deps_.store, run.metadata.ns, run.metadata.name, [&](api::Run& kept) {
          kept.metadata.annotations[std::string(kOrphanedAnnotation)] =
              base::FormatTime(deps_.clock.Now());
          return base::Ok();
        }));
  }
  const auto gone =
      deps_.store.Delete(store::KeyOf<api::Job>(job.metadata.ns, job.metadata.name), std::nullopt);
  return !gone && gone.error().code != base::Code::kNotFound ? gone : base::Ok();
}

base::Status JobReconciler::Adopt(const api::Job& job, std::vector<api::Run>& runs) {
  std::vector<api::Run> kept;
  for (auto& run : runs) {
    if (!Orphaned(run)) {
      kept.push_back(std::move(run));
    } else if (run.spec.run_id != job.spec.run_id) {
      RETURN_IF_ERROR(DeleteRun(deps_.store, run));
    } else {
      ASSIGN_OR_RETURN(auto adopted,
                       store::Mutate<api::Run>(
                           deps_.store, run.metadata.ns, run.metadata.name, [&](api::Run& mine) {
                             mine.metadata.annotations.erase(std::string(kOrphanedAnnotation));
                             const auto fresh = domain::MakeJobRun(job);
                             mine.spec = fresh.spec;
                             mine.spec.max_attempts = mine.status.attempt + fresh.spec.max_attempts;
                             return base::Ok();
                           }));
      deps_.log.Info("run of a deleted job goes on",
                     {{"run", job.metadata.ns + "/" + adopted.metadata.name},
                      {"attempts", adopted.status.attempt}});
      kept.push_back(std::move(adopted));
    }
  }
  runs = std::move(kept);
  return base::Ok();
}

base::Status JobReconciler::Prune(const std::vector<api::Run>& runs) {
  size_t ended = 0;
  for (const auto& run : runs) {
    if (domain::HasEnded(run) && ++ended > kKeepRuns) RETURN_IF_ERROR(DeleteRun(deps_.store, run));
  }
  return base::Ok();
}

base::Status JobReconciler::CollectOrphans() {
  ASSIGN_OR_RETURN(const auto runs, store::ListTyped<api::Run>(deps_.store, ""));
  for (const auto& run : runs) {
    const auto it = run.metadata.annotations.find(std::string(kOrphanedAnnotation));
    if (it == run.metadata.annotations.end()) continue;
    const auto since = base::ParseTime(it->second);
    if (since && deps_.clock.Now() - *since <= kKeepOrphan) continue;
    // As it was listed: a job may have adopted it meanwhile.
    const auto gone = deps_.store.Delete(store::KeyOf<api::Run>(run.metadata.ns, run.metadata.name),
                                         run.metadata.resource_version);
    if (!gone && gone.error().code != base::Code::kNotFound &&
        gone.error().code != base::Code::kAborted)
      return gone;
  }
  return base::Ok();
}

}  // namespace sless::reconcile
