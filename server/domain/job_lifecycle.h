#pragma once

// What a job does next. Pure: no I/O, no clock, no locks.
//
//   runId 0: nothing runs. A raised runId runs once, under the Run object "<job>.<runId>", whose
//   unique name is what keeps it from running twice. A failed run gets one more attempt only where
//   someone asks for it (RunSpec.maxAttempts is raised).

#include <optional>
#include <string>

#include "client/api/job.h"

namespace sless::domain {

enum class JobStep {
  kSkip,  ///< runId is 0: phase Skipped; first `cancel_newest` says whether a run must be ended
  kCreateRun,  ///< create the Run object RunName(job, runId); kAlreadyExists is success
  kWait,       ///< a run under an older runId is still active: look again when it ends
  kFollow,     ///< the run under this runId exists: status is its copy
  kKeep,    ///< it ran before and its Run object is gone: status stays as it is where it tells how
            ///< that ended, else Failed
  kReject,  ///< runId is below one that ran: nothing runs, phase Failed, reason RunIdLowered
};

struct JobDecision {
  JobStep step = JobStep::kSkip;
  bool cancel_newest = false;  ///< end the newest run, Pending or Running
  std::string message;         ///< kReject and kWait: why
  bool operator==(const JobDecision&) const = default;
};

/// `newest` is the job's run with the highest runId, if there is one.
JobDecision DecideJob(const api::JobSpec& spec, const api::JobStatus& status,
                      const std::optional<api::Run>& newest);

/// The job's status after `decision`. Changes nothing where nothing changed, so that writing it
/// back is no write.
api::JobStatus NextJobStatus(const JobDecision& decision, const api::Job& job,
                             const std::optional<api::Run>& newest);

/// Nothing of `run` runs or will run, unless somebody allows one more attempt.
bool HasEnded(const api::Run& run);

/// "<job>.<runId>".
std::string RunName(std::string_view job, int64_t run_id);
/// The run that kCreateRun asks for: namespace, name and spec are set.
api::Run MakeJobRun(const api::Job& job);

}  // namespace sless::domain
