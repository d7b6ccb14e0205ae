#include "server/reconcile/trigger_reconciler.h"

#include <fmt/format.h>

#include "server/reconcile/testing/world.h"

namespace sless::reconcile {
namespace {

using api::Function;
using api::Trigger;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class TriggerReconcilerTest : public testing::Test {
 protected:
  void SetUp() override { world_.Start(); }
  void PutHttp(const std::string& name, const std::function<void(Trigger&)>& change = {}) {
    world_.Put<Trigger>(name, [&](Trigger& t) {
      t.spec.function = "f";
      t.spec.type = "http";
      if (!t.spec.http) t.spec.http = api::HttpSpec{};
      if (change) change(t);
    });
  }
  void PutCron(const std::string& name, const std::function<void(Trigger&)>& change = {}) {
    world_.Put<Trigger>(name, [&](Trigger& t) {
      t.spec.function = "f";
      t.spec.type = "cron";
      if (!t.spec.cron) t.spec.cron = api::CronSpec{.schedule = "0 3 * * *"};
      if (change) change(t);
    });
  }
  World world_;
};

// The reconciler of a function finds its triggers by a piece of their stored text.
TEST_F(TriggerReconcilerTest, AFunctionHasItsOwnTriggersOnly) {
  for (const char* name : {"f", "f-f"}) {
    world_.PutFunction(name);
    ASSERT_TRUE(world_.Reaches<Function>(name, "Ready"));
  }
  PutHttp("other", [](Trigger& t) {
    t.spec.function = "f-f";
    t.spec.http->path = R"(/"function":"f")";
  });
  PutHttp("own", [](Trigger& t) { t.spec.http->path = "/own"; });
  ASSERT_TRUE(world_.Reaches<Trigger>("other", "Ready"));
  ASSERT_TRUE(world_.Reaches<Trigger>("own", "Ready"));
  ASSERT_THAT(world_.serving->Route("f")->http, SizeIs(1));
  EXPECT_EQ(world_.serving->Route("f")->http[0].spec.path, "/own");
  EXPECT_THAT(world_.serving->Route("f-f")->http, SizeIs(1));
}

TEST_F(TriggerReconcilerTest, ReadyMeansThatTheRouteHasIt) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  PutHttp("web", [](Trigger& t) { t.spec.http->path = "/api"; });
  ASSERT_TRUE(world_.Reaches<Trigger>("web", "Ready"));
  ASSERT_THAT(world_.serving->Route("f")->http, SizeIs(1));
  EXPECT_EQ(world_.serving->Route("f")->http[0].spec.path, "/api");
  EXPECT_EQ(world_.Get<Trigger>("web").status.url, "http://sless.test/fn/default/f/api");
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 1);

  PutHttp("web", [](Trigger& t) { t.spec.http->methods = {"GET"}; });
  ASSERT_TRUE(world_.Reaches<Trigger>("web", "Ready"));
  EXPECT_THAT(world_.serving->Route("f")->http[0].spec.methods, SizeIs(1));
}

TEST_F(TriggerReconcilerTest, DisablingOneLeavesTheOthersAndDisablingAllTakesTheReplicas) {
  world_.PutFunction("f", [](Function& f) { f.spec.min_replicas = 3; });
  PutHttp("a", [](Trigger& t) { t.spec.http->path = "/a"; });
  PutHttp("b", [](Trigger& t) { t.spec.http->path = "/b"; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  ASSERT_TRUE(world_.Reaches<Trigger>("a", "Ready"));
  ASSERT_TRUE(world_.Reaches<Trigger>("b", "Ready"));
  PutHttp("a", [](Trigger& t) { t.spec.enabled = false; });
  ASSERT_TRUE(world_.Reaches<Trigger>("a", "Disabled"));
  EXPECT_FALSE(world_.serving->Route("f")->http[0].enabled);
  EXPECT_TRUE(world_.serving->Route("f")->http[1].enabled);
  EXPECT_EQ(world_.serving->Route("f")->scaling.min_replicas, 3);
  PutHttp("b", [](Trigger& t) { t.spec.enabled = false; });
  ASSERT_TRUE(world_.Reaches<Trigger>("b", "Disabled"));
  EXPECT_EQ(world_.serving->Route("f")->scaling.min_replicas, 0);
  EXPECT_FALSE(world_.serving->Route("f")->switched_off);
  // An enabled cron trigger keeps it alive as well.
  PutCron("c");
  ASSERT_TRUE(Eventually([&] { return world_.serving->Route("f")->scaling.min_replicas == 3; }));
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 1);
}

TEST_F(TriggerReconcilerTest, DeletedMeansThatTheRouteHasItNoMore) {
  world_.PutFunction("f");
  PutHttp("web");
  ASSERT_TRUE(world_.Reaches<Trigger>("web", "Ready"));
  world_.Delete<Trigger>("web");
  ASSERT_TRUE(world_.Gone<Trigger>("web"));
  EXPECT_THAT(world_.serving->Route("f")->http, IsEmpty());
}

TEST_F(TriggerReconcilerTest, AMissingFunctionIsSaidAndItsComingIsSeen) {
  PutHttp("web");
  PutCron("tick");
  ASSERT_TRUE(world_.Reaches<Trigger>("web", "Failed"));
  ASSERT_TRUE(world_.Reaches<Trigger>("tick", "Failed"));
  EXPECT_THAT(world_.Get<Trigger>("web").status.failure->message,
              HasSubstr("function \"f\" does not exist in namespace \"default\""));
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Trigger>("web", "Ready"));
  ASSERT_TRUE(world_.Reaches<Trigger>("tick", "Ready"));
  EXPECT_NE(world_.Get<Trigger>("tick").status.last_fire,
            "");  // what was before counts as looked at
  world_.Delete<Function>("f");
  ASSERT_TRUE(world_.Reaches<Trigger>("web", "Failed"));
}

TEST_F(TriggerReconcilerTest, ATriggerThatMovesLeavesItsOldFunction) {
  world_.PutFunction("f");
  world_.PutFunction("g");
  PutHttp("web");
  ASSERT_TRUE(world_.Reaches<Trigger>("web", "Ready"));
  PutHttp("web", [](Trigger& t) { t.spec.function = "g"; });
  ASSERT_TRUE(world_.Reaches<Trigger>("web", "Ready"));
  EXPECT_THAT(world_.serving->Route("g")->http, SizeIs(1));
  EXPECT_TRUE(Eventually([&] { return world_.serving->Route("f")->http.empty(); }));
}

TEST_F(TriggerReconcilerTest, CronShowsItsNextRuns) {
  world_.PutFunction("f");
  PutCron("tick");
  ASSERT_TRUE(world_.Reaches<Trigger>("tick", "Ready"));
  const auto status = world_.Get<Trigger>("tick").status;
  ASSERT_THAT(status.next_runs, SizeIs(5));
  EXPECT_THAT(status.next_runs[0], HasSubstr("T03:00:00.000Z"));
  EXPECT_EQ(status.url, "");
  PutCron("tick", [](Trigger& t) { t.spec.enabled = false; });
  ASSERT_TRUE(world_.Reaches<Trigger>("tick", "Disabled"));
  EXPECT_THAT(world_.Get<Trigger>("tick").status.next_runs, IsEmpty());
}

TEST_F(TriggerReconcilerTest, DeletingACronTriggerTakesItsRuns) {
  world_.PutFunction("f");
  PutCron("tick");
  ASSERT_TRUE(world_.Reaches<Trigger>("tick", "Ready"));
  api::Run run;
  run.metadata.ns = "default";
  run.metadata.name = "tick.60.cron";
  run.spec = {.owner_kind = "Trigger", .owner = "tick", .function = "f", .run_id = 60};
  run.status.phase = "Succeeded";
  ASSERT_THAT(store::CreateTyped(*world_.store, run), base::IsOk());
  world_.Delete<Trigger>("tick");
  ASSERT_TRUE(world_.Gone<Trigger>("tick"));
  EXPECT_TRUE(world_.Gone<api::Run>("tick.60.cron"));
}

TEST_F(TriggerReconcilerTest, ADisabledCronTriggerBeginsNoRunThatWaits) {
  world_.PutFunction("f");
  PutCron("tick");
  ASSERT_TRUE(world_.Reaches<Trigger>("tick", "Ready"));
  world_.invoker.Hold(true);
  for (const int64_t id : {60, 120}) {  // the second one waits for the first
    api::Run run;
    run.metadata.ns = "default";
    run.metadata.name = fmt::format("tick.{}.cron", id);
    run.spec = {.owner_kind = "Trigger", .owner = "tick", .function = "f", .run_id = id};
    run.spec.serial = true;
    ASSERT_THAT(store::CreateTyped(*world_.store, run), base::IsOk());
    ASSERT_TRUE(Eventually([&] { return world_.invoker.inside() == 1; }));
  }
  PutCron("tick", [](Trigger& t) { t.spec.enabled = false; });
  ASSERT_TRUE(world_.Reaches<Trigger>("tick", "Disabled"));
  const auto phase = [&](const char* name) { return world_.Get<api::Run>(name).status.phase; };
  ASSERT_TRUE(Eventually([&] { return phase("tick.120.cron") == "Failed"; }));
  EXPECT_EQ(world_.Get<api::Run>("tick.120.cron").status.failure->reason, "Cancelled");
  EXPECT_EQ(phase("tick.60.cron"), "Running") << "ends by itself";
  world_.invoker.Hold(false);
  ASSERT_TRUE(Eventually([&] { return phase("tick.60.cron") == "Succeeded"; }));
  EXPECT_EQ(world_.invoker.calls().size(), 1u);
}

TEST_F(TriggerReconcilerTest, ACronTriggerIsGoneOnlyWhenItsCallHasEnded) {
  world_.PutFunction("f");
  PutCron("tick");
  ASSERT_TRUE(world_.Reaches<Trigger>("tick", "Ready"));
  world_.invoker.Hold(true);
  world_.invoker.Linger(true);
  api::Run run;
  run.metadata.ns = "default";
  run.metadata.name = "tick.60.cron";
  run.spec = {.owner_kind = "Trigger", .owner = "tick", .function = "f", .run_id = 60};
  ASSERT_THAT(store::CreateTyped(*world_.store, run), base::IsOk());
  ASSERT_TRUE(Eventually([&] { return world_.invoker.inside() == 1; }));
  world_.Delete<Trigger>("tick");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(world_.Get<Trigger>("tick").metadata.name, "tick");
  EXPECT_EQ(world_.Get<api::Run>("tick.60.cron").status.phase, "Running");
  world_.invoker.Linger(false);
  ASSERT_TRUE(world_.Gone<Trigger>("tick"));
  EXPECT_EQ(world_.invoker.inside(), 0);
  EXPECT_TRUE(world_.Gone<api::Run>("tick.60.cron"));
}

}  // namespace
}  // namespace sless::reconcile
