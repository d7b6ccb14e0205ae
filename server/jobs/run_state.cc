#include "server/jobs/run_state.h"

#include <fmt/format.h>

#include "client/api/error_body.h"
#include "client/base/strings.h"
#include "server/domain/job_lifecycle.h"

namespace sless::jobs {
namespace {

bool ShallEnd(const api::Run& run) {
  return run.metadata.annotations.contains(std::string(kCancelAnnotation));
}

void FailAttempt(api::Run& run, api::Failure failure, base::TimePoint now) {
  auto& status = run.status;
  status.server.clear();
  status.result_json.clear();
  status.log_tail = base::Join(failure.log_tail, "\n");
  status.failure = std::move(failure);
  status.finished_at = base::FormatTime(now);
  status.phase = status.attempt < run.spec.max_attempts ? "Pending" : "Failed";
}

}  // namespace

RunStep NextStep(const api::Run& run, const std::string& instance) {
  const auto& status = run.status;
  if (status.phase == "Running")
    return status.server == instance ? RunStep::kOurs : RunStep::kInterrupted;
  // A failed run with attempts left: somebody asked for one more by raising maxAttempts.
  if (domain::HasEnded(run)) return RunStep::kNothing;
  return ShallEnd(run) ? RunStep::kCancelled : RunStep::kStart;
}

void AskToEnd(api::Run& run, std::string why, base::TimePoint now) {
  if (domain::HasEnded(run)) return;
  run.metadata.annotations.insert_or_assign(std::string(kCancelAnnotation), std::move(why));
  if (run.status.phase != "Running") MarkCancelled(run, now);
}

void MarkCancelled(api::Run& run, base::TimePoint now) {
  const auto why = run.metadata.annotations.extract(std::string(kCancelAnnotation));
  api::Failure failure;
  failure.reason = "Cancelled";
  failure.message = why ? why.mapped() : "the run was cancelled";
  MarkFailed(run, std::move(failure), false, now);
}

void MarkStarted(api::Run& run, const std::string& instance, const std::string& request_id,
                 base::TimePoint now) {
  auto& status = run.status;
  status.phase = "Running";
  status.attempt += 1;
  status.server = instance;
  status.request_id = request_id;
  status.result_json.clear();
  status.failure.reset();
  status.log_tail.clear();
  status.started_at = base::FormatTime(now);
  status.finished_at.clear();
}

void MarkNotBegun(api::Run& run) {
  run.status.phase = "Pending";
  run.status.attempt -= 1;
  run.status.server.clear();
  run.status.started_at.clear();
}

void MarkFinished(api::Run& run, const base::Result<gateway::EventResult>& outcome,
                  base::TimePoint now) {
  if (!outcome && ShallEnd(run)) return MarkCancelled(run, now);
  run.metadata.annotations.erase(std::string(kCancelAnnotation));
  if (!outcome) return FailAttempt(run, api::FailureOf(outcome.error()), now);
  if (outcome->result_json.size() > kMaxResultBytes) {
    api::Failure failure;
    failure.reason = "ResultTooLarge";
    failure.message = fmt::format(
        "the handler returned {} bytes of JSON, at most {} are kept; store large results elsewhere "
        "and return where they are",
        outcome->result_json.size(), kMaxResultBytes);
    failure.log_tail = outcome->log_tail;
    return MarkFailed(run, std::move(failure), false, now);
  }
  auto& status = run.status;
  status.phase = "Succeeded";
  status.server.clear();
  status.failure.reset();
  status.result_json = outcome->result_json;
  status.log_tail = base::Join(outcome->log_tail, "\n");
  status.finished_at = base::FormatTime(now);
}

void MarkInterrupted(api::Run& run, base::TimePoint now) {
  if (ShallEnd(run)) return MarkCancelled(run, now);
  api::Failure failure;
  failure.reason = "Interrupted";
  failure.message = fmt::format("slessd stopped while attempt {} ran; it may have had effects",
                                run.status.attempt);
  FailAttempt(run, std::move(failure), now);
}

void MarkFailed(api::Run& run, api::Failure failure, bool counts, base::TimePoint now) {
  if (counts) run.status.attempt += 1;
  if (run.status.started_at.empty()) run.status.started_at = base::FormatTime(now);
  // What is left of the attempts must not start it again; one more is asked for by raising
  // maxAttempts.
  run.spec.max_attempts = run.status.attempt;
  FailAttempt(run, std::move(failure), now);
}

}  // namespace sless::jobs
