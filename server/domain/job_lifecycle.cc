#include "server/domain/job_lifecycle.h"

#include <fmt/format.h>

#include <algorithm>

namespace sless::domain {
namespace {

api::JobStatus Follow(api::JobStatus status, const api::Run& run) {
  // Failed is final; a run that was allowed one more attempt has yet to begin it.
  status.phase = run.status.phase == "Failed" && !HasEnded(run) ? "Pending" : run.status.phase;
  status.run_id = run.spec.run_id;
  status.last_run_id = std::max(status.last_run_id, run.spec.run_id);
  status.result_json = run.status.result_json;
  status.failure = run.status.failure;
  status.log_tail = run.status.log_tail;
  status.attempts = run.status.attempt;
  status.started_at = run.status.started_at;
  status.finished_at = run.status.finished_at;
  return status;
}

// Nothing of an earlier run shows through.
api::JobStatus Blank(const api::JobStatus& before, std::string phase) {
  api::JobStatus status;
  status.phase = std::move(phase);
  status.last_run_id = before.last_run_id;
  return status;
}

api::JobStatus Keep(const api::Job& job) {
  const auto& before = job.status;
  if (before.run_id == job.spec.run_id && (before.phase == "Succeeded" || before.phase == "Failed"))
    return before;
  api::JobStatus status = Blank(before, "Failed");
  status.run_id = job.spec.run_id;
  status.failure =
      api::Failure{"RunForgotten",
                   fmt::format("run {} ran before and its record is gone; raise runId to run again",
                               job.spec.run_id),
                   "",
                   0,
                   {}};
  return status;
}

}  // namespace

bool HasEnded(const api::Run& run) {
  const auto& status = run.status;
  return status.phase == "Succeeded" ||
         (status.phase == "Failed" && status.attempt >= run.spec.max_attempts);
}

std::string RunName(std::string_view job, int64_t run_id) {
  return fmt::format("{}.{}", job, run_id);
}

JobDecision DecideJob(const api::JobSpec& spec, const api::JobStatus& status,
                      const std::optional<api::Run>& newest) {
  const bool active = newest && !HasEnded(*newest);
  if (spec.run_id == 0) return {JobStep::kSkip, active, ""};
  if (newest && newest->spec.run_id == spec.run_id) return {JobStep::kFollow, false, ""};

  const int64_t last = std::max(status.last_run_id, newest ? newest->spec.run_id : 0);
  if (spec.run_id < last) {
    return {JobStep::kReject, false,
            fmt::format("runId {} is below the last run, {}; raise it above {} to run again",
                        spec.run_id, last, last)};
  }
  if (spec.run_id == last) return {JobStep::kKeep, false, ""};
  if (active) {
    return {JobStep::kWait, false,
            fmt::format("run {} is still {}", newest->spec.run_id,
                        newest->status.phase == "Running" ? "running" : "waiting")};
  }
  return {JobStep::kCreateRun, false, ""};
}

api::JobStatus NextJobStatus(const JobDecision& decision, const api::Job& job,
                             const std::optional<api::Run>& newest) {
  api::JobStatus status;
  switch (decision.step) {
    case JobStep::kSkip:
      if (decision.cancel_newest && newest) {  // skipped is what runs no more
        status = Follow(job.status, *newest);
        break;
      }
      status = Blank(job.status, "Skipped");
      if (newest) status.last_run_id = std::max(status.last_run_id, newest->spec.run_id);
      break;
    case JobStep::kCreateRun:
    case JobStep::kWait:
      status = Blank(job.status, "Pending");
      status.run_id = job.spec.run_id;
      break;
    case JobStep::kFollow:
      status = newest ? Follow(job.status, *newest) : job.status;
      break;
    case JobStep::kKeep:
      status = Keep(job);
      break;
    case JobStep::kReject:
      status = Blank(job.status, "Failed");
      status.run_id = job.spec.run_id;
      if (newest) status.last_run_id = std::max(status.last_run_id, newest->spec.run_id);
      status.failure = api::Failure{"RunIdLowered", decision.message, "", 0, {}};
      break;
  }
  status.observed_generation = job.metadata.generation;
  return status;
}

api::Run MakeJobRun(const api::Job& job) {
  api::Run run;
  run.metadata.ns = job.metadata.ns;
  run.metadata.name = RunName(job.metadata.name, job.spec.run_id);
  run.spec.owner_kind = std::string(api::kKindJob);
  run.spec.owner = job.metadata.name;
  run.spec.function = job.spec.function;
  run.spec.event_json = job.spec.event_json;
  run.spec.run_id = job.spec.run_id;
  run.spec.max_attempts = 1 + std::max<int64_t>(job.spec.max_retries, 0);
  return run;
}

}  // namespace sless::domain
