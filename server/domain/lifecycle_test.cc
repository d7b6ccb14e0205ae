#include <gmock/gmock.h>

#include <functional>
#include <set>

#include "server/domain/function_lifecycle.h"
#include "server/domain/job_lifecycle.h"
#include "server/domain/scaling.h"

namespace sless::domain {
namespace {

using testing::HasSubstr;

struct JobCase {
  const char* name;
  int64_t wanted;  // spec.runId
  int64_t last;    // status.lastRunId
  int64_t newest;  // runId of the newest run, 0 for none
  const char* newest_phase;
  JobStep step;
  bool cancel;
  const char* phase;  // of the status afterwards
};
class JobTable : public testing::TestWithParam<JobCase> {};
TEST_P(JobTable, Decides) {
  const auto& c = GetParam();
  api::Job job;
  job.metadata.ns = "x";
  job.metadata.name = "job";
  job.metadata.generation = 7;
  job.spec.run_id = c.wanted;
  job.status.last_run_id = c.last;
  std::optional<api::Run> newest;
  if (c.newest) {
    newest.emplace();
    newest->spec.run_id = c.newest;
    newest->status.phase = c.newest_phase;
    newest->status.attempt = 2;
    newest->status.result_json = "42";
  }
  const auto decision = DecideJob(job.spec, job.status, newest);
  EXPECT_EQ(decision.step, c.step);
  EXPECT_EQ(decision.cancel_newest, c.cancel);
  const auto status = NextJobStatus(decision, job, newest);
  EXPECT_EQ(status.phase, c.phase);
  EXPECT_EQ(status.observed_generation, 7);
  const bool follows = c.step == JobStep::kFollow || c.cancel;
  EXPECT_EQ(status.run_id, c.cancel ? c.newest : c.wanted);
  EXPECT_EQ(status.last_run_id,
            std::max(c.last, c.step == JobStep::kFollow || c.step == JobStep::kSkip ||
                                     c.step == JobStep::kReject
                                 ? c.newest
                                 : 0));
  EXPECT_EQ(status.attempts, follows ? 2 : 0);
  EXPECT_EQ(status.result_json, follows ? "42" : "");
  // Decided again from what was written, nothing moves.
  job.status = status;
  EXPECT_EQ(NextJobStatus(DecideJob(job.spec, status, newest), job, newest), status);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, JobTable,
    testing::Values(
        JobCase{"Never", 0, 0, 0, "", JobStep::kSkip, false, "Skipped"},
        JobCase{"First", 1, 0, 0, "", JobStep::kCreateRun, false, "Pending"},
        JobCase{"FirstIsAnyNumber", 20260101, 0, 0, "", JobStep::kCreateRun, false, "Pending"},
        JobCase{"Pending", 1, 0, 1, "Pending", JobStep::kFollow, false, "Pending"},
        JobCase{"Running", 1, 1, 1, "Running", JobStep::kFollow, false, "Running"},
        JobCase{"Succeeded", 1, 1, 1, "Succeeded", JobStep::kFollow, false, "Succeeded"},
        JobCase{"Failed", 1, 1, 1, "Failed", JobStep::kFollow, false, "Failed"},
        JobCase{"Raised", 2, 1, 1, "Succeeded", JobStep::kCreateRun, false, "Pending"},
        JobCase{"RaisedAfterFailure", 3, 1, 1, "Failed", JobStep::kCreateRun, false, "Pending"},
        JobCase{"RaisedWhileRunning", 2, 1, 1, "Running", JobStep::kWait, false, "Pending"},
        JobCase{"RaisedWhilePending", 2, 0, 1, "Pending", JobStep::kWait, false, "Pending"},
        JobCase{"BackToZero", 0, 5, 5, "Succeeded", JobStep::kSkip, false, "Skipped"},
        JobCase{"BackToZeroWhileRunning", 0, 5, 5, "Running", JobStep::kSkip, true, "Running"},
        JobCase{"ZeroAndBack", 5, 5, 5, "Succeeded", JobStep::kFollow, false, "Succeeded"},
        JobCase{"Lowered", 4, 5, 5, "Succeeded", JobStep::kReject, false, "Failed"},
        JobCase{"LoweredAfterZero", 3, 5, 0, "", JobStep::kReject, false, "Failed"},
        JobCase{"LoweredWhileStatusIsLate", 3, 0, 5, "Running", JobStep::kReject, false, "Failed"},
        JobCase{"RunObjectGone", 5, 5, 0, "", JobStep::kKeep, false, "Failed"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(JobLifecycle, AFinishedStatusOutlivesItsRunObject) {
  api::Job job;
  job.spec.run_id = 5;
  job.status.run_id = job.status.last_run_id = 5;
  job.status.phase = "Succeeded";
  job.status.result_json = "1";
  EXPECT_EQ(NextJobStatus(DecideJob(job.spec, job.status, {}), job, {}), job.status);
}

TEST(JobLifecycle, TextsNameTheRuns) {
  api::JobSpec spec;
  spec.run_id = 3;
  api::JobStatus status;
  status.last_run_id = 5;
  EXPECT_THAT(DecideJob(spec, status, {}).message, HasSubstr("runId 3 is below the last run, 5"));
  api::Run run;
  run.spec.run_id = 2;
  run.status.phase = "Running";
  status.last_run_id = 2;
  EXPECT_EQ(DecideJob(spec, status, run).message, "run 2 is still running");
}

TEST(JobLifecycle, TheRunIsMadeFromTheJob) {
  api::Job job;
  job.metadata.ns = "x";
  job.metadata.name = "nightly";
  job.spec.function = "hello";
  job.spec.event_json = "[1]";
  job.spec.run_id = 4;
  job.spec.max_retries = 2;
  const auto run = MakeJobRun(job);
  EXPECT_EQ(run.metadata.ns, "x");
  EXPECT_EQ(run.metadata.name, "nightly.4");
  EXPECT_EQ(run.spec.owner_kind, "Job");
  EXPECT_EQ(run.spec.owner, "nightly");
  EXPECT_EQ(run.spec.function, "hello");
  EXPECT_EQ(run.spec.event_json, "[1]");
  EXPECT_EQ(run.spec.run_id, 4);
  EXPECT_EQ(run.spec.max_attempts, 3);
}

TEST(RevisionInput, ChangesWithWhatRunsOnly) {
  api::FunctionSpec base_spec;
  base_spec.environment = {{"A", "1"}, {"B", "2"}};
  const auto base_input = RevisionInput(base_spec);
  EXPECT_EQ(base_input.size(), 64u);
  using Change = std::function<void(api::FunctionSpec&)>;
  std::set<std::string> inputs{base_input};
  const std::vector<Change> counts = {[](auto& s) { s.source.hash = "x"; },
                                      [](auto& s) { s.code_hash = "x"; },
                                      [](auto& s) { s.code_hash = ""; },
                                      [](auto& s) { s.runtime = "x"; },
                                      [](auto& s) { s.entrypoint = "x"; },
                                      [](auto& s) { s.memory_mb = 1; },
                                      [](auto& s) { s.timeout_sec = 1; },
                                      [](auto& s) { s.concurrency = 2; },
                                      [](auto& s) { s.environment["A"] = "2"; },
                                      [](auto& s) { s.environment.erase("A"); },
                                      [](auto& s) {
                                        s.environment = {{"A", "1B2"}};
                                      },
                                      [](auto& s) {
                                        s.environment = {{"A1", ""}, {"B", "2"}};
                                      }};
  for (const auto& change : counts) {
    auto spec = base_spec;
    change(spec);
    EXPECT_TRUE(inputs.insert(RevisionInput(spec)).second);
  }
  const std::vector<Change> does_not_count = {
      [](auto& s) { s.labels["a"] = "b"; },     [](auto& s) { s.replicas = 3; },
      [](auto& s) { s.min_replicas = 1; },      [](auto& s) { s.max_replicas = 9; },
      [](auto& s) { s.idle_timeout_sec = 1; },  [](auto& s) { s.build_timeout_sec = 1; },
      [](auto& s) { s.source.path = "other"; }, [](auto& s) { s.source.type = "zip"; },
      [](auto& s) { s.source.code = "x"; }};
  for (const auto& change : does_not_count) {
    auto spec = base_spec;
    change(spec);
    EXPECT_EQ(RevisionInput(spec), base_input);
  }
}

TEST(NextJobStatus, ARunThatWasAllowedOneMoreAttemptIsPending) {
  api::Job job;
  job.spec.run_id = 1;
  std::optional<api::Run> run(api::Run{});
  run->spec.run_id = 1;
  run->status.phase = "Failed";
  run->status.attempt = run->spec.max_attempts = 1;
  const auto phase = [&] {
    return NextJobStatus(DecideJob(job.spec, job.status, run), job, run).phase;
  };
  EXPECT_EQ(phase(), "Failed");
  run->spec.max_attempts = 2;
  EXPECT_EQ(phase(), "Pending");
}

TEST(RevisionInput, CodeAndCodeHashDoNotMix) {
  api::FunctionSpec a, b;
  a.source.hash = "xy";
  a.code_hash = "z";
  b.source.hash = "x";
  b.code_hash = "yz";
  EXPECT_NE(RevisionInput(a), RevisionInput(b));
}

TEST(WantedReplicas, Table) {
  EXPECT_EQ(WantedReplicas(0, 0, 1, 0, 5), 0);
  EXPECT_EQ(WantedReplicas(0, 1, 1, 0, 5), 1);
  EXPECT_EQ(WantedReplicas(1, 0, 1, 0, 5), 1);
  EXPECT_EQ(WantedReplicas(1, 1, 1, 0, 5), 2);
  EXPECT_EQ(WantedReplicas(10, 90, 1, 0, 5), 5);
  EXPECT_EQ(WantedReplicas(10, 0, 10, 0, 5), 1);
  EXPECT_EQ(WantedReplicas(10, 1, 10, 0, 5), 2);
  EXPECT_EQ(WantedReplicas(0, 0, 10, 2, 5), 2);
  EXPECT_EQ(WantedReplicas(9, 9, 1, 3, 3), 3);
  EXPECT_EQ(WantedReplicas(5, 5, 1, 0, 0), 0);
  EXPECT_EQ(WantedReplicas(-3, -3, 0, 0, 5), 0);
  EXPECT_EQ(WantedReplicas(INT64_MAX, INT64_MAX, 1, 0, 100), 100);
}

}  // namespace
}  // namespace sless::domain
