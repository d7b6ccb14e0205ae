#include "server/reconcile/job_reconciler.h"

#include "server/reconcile/testing/world.h"

namespace sless::reconcile {
namespace {

using api::Function;
using api::Job;
using testing::HasSubstr;

class JobReconcilerTest : public testing::Test {
 protected:
  void SetUp() override {
    world_.Start();
    world_.PutFunction("f");
    ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  }
  void PutJob(int64_t run_id, const std::function<void(Job&)>& change = {}) {
    world_.Put<Job>("j", [&](Job& job) {
      job.spec.function = "f";
      job.spec.run_id = run_id;
      if (change) change(job);
    });
  }
  void CallsFail() {
    world_.invoker.Answers([](const auto&) -> base::Result<gateway::EventResult> {
      return base::Err(base::Code::kFailedPrecondition, "ValueError: no", "", "HandlerError");
    });
  }
  std::vector<api::Run> Runs() {
    return store::ListTyped<api::Run>(*world_.store, "default", "j.").value();
  }
  World world_;
};

TEST_F(JobReconcilerTest, RunIdZeroIsSkippedAndRunsNothing) {
  PutJob(0);
  ASSERT_TRUE(world_.Reaches<Job>("j", "Skipped"));
  EXPECT_TRUE(Runs().empty());
}

TEST_F(JobReconcilerTest, ARaisedRunIdRunsOnceAndAnEventAloneRunsNothing) {
  PutJob(1, [](Job& job) { job.spec.event_json = "{\"n\":1}"; });
  ASSERT_TRUE(world_.Reaches<Job>("j", "Succeeded"));
  auto job = world_.Get<Job>("j");
  EXPECT_EQ(job.status.run_id, 1);
  EXPECT_EQ(job.status.attempts, 1);
  EXPECT_EQ(job.status.result_json, "{\"ok\":true}");
  PutJob(1, [](Job& job) { job.spec.event_json = "{\"n\":2}"; });
  ASSERT_TRUE(world_.Reaches<Job>("j", "Succeeded"));
  EXPECT_EQ(world_.invoker.calls().size(), 1u);
  PutJob(2);
  ASSERT_TRUE(Eventually([&] {
    return world_.Get<Job>("j").status.run_id == 2 &&
           world_.Get<Job>("j").status.phase == "Succeeded";
  }));
  EXPECT_EQ(world_.invoker.calls().size(), 2u);
  EXPECT_EQ(Runs().size(), 2u);
  PutJob(0);
  ASSERT_TRUE(world_.Reaches<Job>("j", "Skipped"));
  EXPECT_EQ(Runs().size(), 2u);
}

TEST_F(JobReconcilerTest, NothingRunsAgainAfterARestart) {
  PutJob(1);
  ASSERT_TRUE(world_.Reaches<Job>("j", "Succeeded"));
  world_.Stop();
  world_.Start();
  ASSERT_TRUE(Eventually([&] { return world_.controller->Settled(); }));
  EXPECT_EQ(world_.invoker.calls().size(), 1u);
  EXPECT_EQ(world_.Get<Job>("j").status.phase, "Succeeded");
}

TEST_F(JobReconcilerTest, RetriesAndThenFails) {
  CallsFail();
  PutJob(1, [](Job& job) { job.spec.max_retries = 2; });
  ASSERT_TRUE(world_.Reaches<Job>("j", "Failed"));
  EXPECT_EQ(world_.Get<Job>("j").status.attempts, 3);
  EXPECT_THAT(world_.Get<Job>("j").status.failure->message, HasSubstr("ValueError"));
}

TEST_F(JobReconcilerTest, AJobThatComesAgainGoesOnWithItsFailedRun) {
  CallsFail();
  PutJob(1);
  ASSERT_TRUE(world_.Reaches<Job>("j", "Failed"));
  world_.Delete<Job>("j");
  ASSERT_TRUE(world_.Gone<Job>("j"));
  ASSERT_EQ(Runs().size(), 1u);
  world_.invoker.Answers({});
  PutJob(1, [](Job& job) { job.spec.event_json = "\"new\""; });
  ASSERT_TRUE(world_.Reaches<Job>("j", "Succeeded"));
  EXPECT_EQ(world_.Get<Job>("j").status.attempts, 2);
  EXPECT_EQ(world_.invoker.calls().back().event_json, "\"new\"");
  // A run that succeeded is forgotten with its job.
  world_.Delete<Job>("j");
  ASSERT_TRUE(world_.Gone<Job>("j"));
  EXPECT_TRUE(Runs().empty());
}

TEST_F(JobReconcilerTest, AnotherRunIdForgetsTheFailedOne) {
  CallsFail();
  PutJob(1);
  ASSERT_TRUE(world_.Reaches<Job>("j", "Failed"));
  world_.Delete<Job>("j");
  ASSERT_TRUE(world_.Gone<Job>("j"));
  world_.invoker.Answers({});
  PutJob(7);
  ASSERT_TRUE(world_.Reaches<Job>("j", "Succeeded"));
  ASSERT_EQ(Runs().size(), 1u);
  EXPECT_EQ(Runs()[0].spec.run_id, 7);
  EXPECT_EQ(world_.Get<Job>("j").status.attempts, 1);
}

TEST_F(JobReconcilerTest, DeletingAJobEndsItsRunningCall) {
  world_.invoker.Hold(true);
  PutJob(1);
  ASSERT_TRUE(Eventually([&] { return world_.invoker.inside() == 1; }));
  world_.Delete<Job>("j");
  ASSERT_TRUE(world_.Gone<Job>("j"));
  EXPECT_EQ(world_.invoker.inside(), 0);
}

TEST_F(JobReconcilerTest, AJobIsGoneOnlyWhenItsCallHasEndedAndTheNextOneRunsAfterIt) {
  world_.invoker.Hold(true);
  world_.invoker.Linger(true);
  PutJob(1, [](Job& job) { job.spec.max_retries = 3; });
  ASSERT_TRUE(Eventually([&] { return world_.invoker.inside() == 1; }));
  world_.Delete<Job>("j");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(world_.Get<Job>("j").metadata.name, "j");
  ASSERT_EQ(Runs().size(), 1u);
  EXPECT_EQ(Runs()[0].status.phase, "Running");
  world_.invoker.Linger(false);
  ASSERT_TRUE(world_.Gone<Job>("j"));
  EXPECT_EQ(world_.invoker.inside(), 0);
  EXPECT_EQ(world_.invoker.calls().size(), 1u);
  world_.invoker.Hold(false);
  PutJob(1);
  ASSERT_TRUE(world_.Reaches<Job>("j", "Succeeded"));
  EXPECT_EQ(world_.Get<Job>("j").status.attempts, 2);
  EXPECT_EQ(world_.invoker.most_at_once(), 1);
}

TEST_F(JobReconcilerTest, ADeletionGoesOnAfterARestart) {
  world_.invoker.Hold(true);
  world_.invoker.Linger(true);
  PutJob(1, [](Job& job) { job.spec.max_retries = 3; });
  ASSERT_TRUE(Eventually([&] { return world_.invoker.inside() == 1; }));
  world_.Delete<Job>("j");
  ASSERT_TRUE(
      Eventually([&] { return !Runs().empty() && !Runs()[0].metadata.annotations.empty(); }));
  world_.Stop();
  world_.Start();
  ASSERT_TRUE(world_.Gone<Job>("j"));
  EXPECT_EQ(world_.invoker.calls().size(), 1u);
}

TEST_F(JobReconcilerTest, AJobSetToZeroIsSkippedOnlyWhenItsCallHasEnded) {
  world_.invoker.Hold(true);
  world_.invoker.Linger(true);
  PutJob(1, [](Job& job) { job.spec.max_retries = 3; });
  ASSERT_TRUE(Eventually([&] { return world_.invoker.inside() == 1; }));
  PutJob(0);
  ASSERT_TRUE(world_.Reaches<Job>("j", "Running"));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(world_.Get<Job>("j").status.phase, "Running");
  PutJob(2);  // waits for the end of the one before
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  EXPECT_EQ(world_.invoker.calls().size(), 1u);
  PutJob(0);
  world_.invoker.Linger(false);
  ASSERT_TRUE(world_.Reaches<Job>("j", "Skipped"));
  EXPECT_EQ(world_.invoker.inside(), 0);
  ASSERT_EQ(Runs().size(), 1u);
  EXPECT_EQ(Runs()[0].status.failure->reason, "Cancelled");
}

TEST_F(JobReconcilerTest, ARunThatHasNotBegunEndsAtOnce) {
  world_.builder.Hold(true);
  world_.PutFunction("slow", [](Function& f) { f.spec.source.hash = "sha256:bbbb"; });
  PutJob(1, [](Job& job) { job.spec.function = "slow"; });
  ASSERT_TRUE(Eventually([&] { return Runs().size() == 1; }));
  PutJob(0, [](Job& job) { job.spec.function = "slow"; });
  ASSERT_TRUE(world_.Reaches<Job>("j", "Skipped"));
  world_.Delete<Job>("j");
  ASSERT_TRUE(world_.Gone<Job>("j"));
  EXPECT_TRUE(Runs().empty());
  world_.builder.Hold(false);
}

TEST_F(JobReconcilerTest, AMissingFunctionFailsTheJob) {
  PutJob(1, [](Job& job) { job.spec.function = "nobody"; });
  ASSERT_TRUE(world_.Reaches<Job>("j", "Failed"));
  EXPECT_THAT(world_.Get<Job>("j").status.failure->message, HasSubstr("\"nobody\" does not exist"));
}

TEST_F(JobReconcilerTest, OrphansAreCollectedAfterTheirTime) {
  CallsFail();
  PutJob(1);
  ASSERT_TRUE(world_.Reaches<Job>("j", "Failed"));
  world_.Delete<Job>("j");
  ASSERT_TRUE(world_.Gone<Job>("j"));
  ASSERT_THAT(world_.jobs->CollectOrphans(), base::IsOk());
  ASSERT_EQ(Runs().size(), 1u);
  ASSERT_THAT(store::Mutate<api::Run>(*world_.store, "default", "j.1",
                                      [](api::Run& run) {
                                        run.metadata.annotations[std::string(kOrphanedAnnotation)] =
                                            "2020-01-01T00:00:00Z";
                                        return base::Ok();
                                      }),
              base::IsOk());
  // A job adopts it between the look at it and its removal.
  std::atomic<bool> adopted{false};
  world_.store->BeforeWrite([&](const api::ObjectKey& key) -> base::Status {
    if (key.kind != api::kKindRun || adopted.exchange(true)) return base::Ok();
    return store::Mutate<api::Run>(*world_.store, "default", "j.1",
                                   [](api::Run& run) {
                                     run.spec.max_attempts = 7;
                                     return base::Ok();
                                   })
        .map([](const auto&) {});
  });
  ASSERT_THAT(world_.jobs->CollectOrphans(), base::IsOk());
  EXPECT_TRUE(adopted);
  EXPECT_EQ(Runs().size(), 1u);
  // It has attempts left now, so it is being written.
  EXPECT_TRUE(
      Eventually([&] { return world_.jobs->CollectOrphans().has_value() && Runs().empty(); }));
}

}  // namespace
}  // namespace sless::reconcile
