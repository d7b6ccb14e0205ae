#include <gtest/gtest.h>

#include <random>

#include "provider/framework/engine/plan.h"
#include "provider/resources/testing/world.h"

namespace sless::resources {
namespace {

using base::Code;
using cty::Value;
using framework::testing::PlannedAction;
using Names = std::set<std::string>;

constexpr const char* kType = "sless_job";
constexpr const char* kId = "default/j";
const Names kRun = {"phase",    "result_json", "error",      "log_tail",
                    "attempts", "started_at",  "finished_at"};

class JobTest : public testing::Test {
 protected:
  Value Config(const std::string& more = "") const {
    return world.Config(kType,
                        R"({"name":"j","function":"f")" + (more.empty() ? "" : "," + more) + "}");
  }
  void Settle(framework::testing::CoreDriver& driver, const Value& config) {
    const auto applied = driver.Apply(config);
    ASSERT_TRUE(applied.Ok()) << applied.Problems();
    ExpectQuiet(driver, config);
  }
  void ExpectQuiet(framework::testing::CoreDriver& driver, const Value& config) {
    for (int i = 0; i < 2; ++i) {
      const auto plan = driver.Plan(config);
      EXPECT_EQ(plan.action, PlannedAction::kNoOp)
          << plan.planned.ToString() << "\nnot " << driver.state().ToString() << plan.Problems();
      const auto refreshed = driver.Refresh();
      ASSERT_TRUE(refreshed.Ok()) << refreshed.Problems();
    }
  }
  std::string Text(const framework::testing::CoreDriver& driver, std::string_view name) {
    return driver.state().Get(name).AsString();
  }
  World world;
};

api::Failure Raised() {
  return {"HandlerError",
          "ValueError: asked to fail",
          "handler.py",
          9,
          {"Traceback (most recent call last)"}};
}

TEST_F(JobTest, RunIdZeroIsKnownToBeSkipped) {
  auto driver = world.Driver(kType);
  const auto plan = driver.Plan(Config());
  EXPECT_EQ(plan.planned.Get("phase"), Value::String("Skipped"));
  EXPECT_TRUE(plan.planned.IsWhollyKnown()) << plan.planned.ToString();
  Settle(driver, Config());
  EXPECT_EQ(world.backend.runs_started, 0);
}

TEST_F(JobTest, RunsOncePerRunId) {
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  EXPECT_EQ(
      Changed(driver.state(), driver.Plan(Config(R"("run_id":1,"event_json":"{\"n\":5}")")).planned)
          .count("phase"),
      1u);
  Settle(driver, Config(R"("run_id":1,"event_json":"{\"n\":5}")"));
  EXPECT_EQ(Text(driver, "phase"), "Succeeded");
  EXPECT_EQ(Text(driver, "result_json"), R"({"n":5})");
  EXPECT_EQ(driver.state().Get("attempts"), Value::Int(1));
  EXPECT_EQ(world.backend.runs_started, 1);

  // Another event alone runs nothing, and the plan says so.
  const auto other = Config(R"("run_id":1,"event_json":"{\"n\":6}")");
  EXPECT_EQ(Changed(driver.state(), driver.Plan(other).planned), (Names{"event_json"}));
  Settle(driver, other);
  EXPECT_EQ(Text(driver, "result_json"), R"({"n":5})");
  EXPECT_EQ(world.backend.runs_started, 1);

  const auto raised = Config(R"("run_id":3,"event_json":"{\"n\":6}")");
  auto expected = kRun;
  expected.insert("run_id");
  EXPECT_EQ(Changed(driver.state(), driver.Plan(raised).planned), expected);
  EXPECT_EQ(driver.Plan(raised).action, PlannedAction::kUpdate);
  Settle(driver, raised);
  EXPECT_EQ(Text(driver, "result_json"), R"({"n":6})");
  EXPECT_EQ(world.backend.runs_started, 2);
}

TEST_F(JobTest, AnEventOfTheSameMeaningIsNoChange) {
  auto driver = world.Driver(kType);
  Settle(driver, Config(R"("run_id":1,"event_json":"{\"a\":1,\"b\":[1,2]}")"));
  EXPECT_EQ(driver.Plan(Config(R"("run_id":1,"event_json":"{ \"b\":[1, 2], \"a\":1.0 }")")).action,
            PlannedAction::kNoOp);
}

TEST_F(JobTest, LoweredRunIdIsRefusedAtPlan) {
  auto driver = world.Driver(kType);
  Settle(driver, Config(R"("run_id":5)"));
  auto plan = driver.Plan(Config(R"("run_id":2)"));
  EXPECT_TRUE(HasError(plan.diagnostics, "run_id", "run_id 5")) << plan.Problems();
  EXPECT_TRUE(HasError(plan.diagnostics, "run_id", "Take 6")) << plan.Problems();
  // Also after a stop at 0, where the state itself has forgotten the number.
  Settle(driver, Config(R"("run_id":0)"));
  EXPECT_EQ(Text(driver, "phase"), "Skipped");
  plan = driver.Plan(Config(R"("run_id":4)"));
  EXPECT_TRUE(HasError(plan.diagnostics, "run_id", "run_id 5")) << plan.Problems();
  Settle(driver, Config(R"("run_id":6)"));
  EXPECT_EQ(world.backend.runs_started, 2);
}

TEST_F(JobTest, LoweredBehindOurBackIsRefusedByTheServerAtRunId) {
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  world.backend.FailNext(
      "job.put",
      {Code::kFailedPrecondition, "the last run was run_id 9", "/spec/runId", "RunIdLowered", {}});
  const auto applied = driver.Apply(Config(R"("run_id":4)"));
  EXPECT_TRUE(HasError(applied.diagnostics, "run_id", "run_id 9")) << applied.Problems();
  EXPECT_EQ(driver.state().Get("run_id"), Value::Int(0));
}

TEST_F(JobTest, AFailedRerunFailsTheApplyAndTheNextTriesOnce) {
  auto driver = world.Driver(kType);
  Settle(driver, Config(R"("run_id":1)"));
  world.backend.run_failure = Raised();
  const auto config = Config(R"("run_id":2)");
  auto failed = driver.Apply(config);
  for (const char* part :
       {"Run 2 of job default/j, attempt 1", "asked to fail", "handler.py:9", "Traceback"}) {
    EXPECT_TRUE(HasError(failed.diagnostics, "run_id", part)) << part << failed.Problems();
  }
  EXPECT_TRUE(failed.violations.empty()) << failed.Problems();
  EXPECT_FALSE(driver.tainted());
  EXPECT_EQ(Text(driver, "phase"), "Failed");
  EXPECT_EQ(Text(driver, "error"), "ValueError: asked to fail (handler.py:9)");
  ASSERT_TRUE(driver.Refresh().Ok());
  EXPECT_EQ(world.backend.runs_started, 2) << "reading runs nothing";
  EXPECT_EQ(Changed(driver.state(), driver.Plan(config).planned), kRun);

  failed = driver.Apply(config);
  EXPECT_TRUE(HasError(failed.diagnostics, "run_id", "attempt 2")) << failed.Problems();
  EXPECT_EQ(world.backend.runs_started, 3);
  world.backend.run_failure.reset();
  Settle(driver, config);
  EXPECT_EQ(world.backend.runs_started, 4);
  EXPECT_EQ(driver.state().Get("attempts"), Value::Int(3));
}

TEST_F(JobTest, AFailedRunIsTriedAgainAfterAZeroToo) {
  auto driver = world.Driver(kType);
  world.backend.run_failure = Raised();
  const auto config = Config(R"("run_id":2)");
  EXPECT_FALSE(driver.Apply(config).Ok());
  Settle(driver, Config(R"("run_id":0)"));
  EXPECT_EQ(world.backend.runs_started, 1);
  const auto failed = driver.Apply(config);
  EXPECT_TRUE(HasError(failed.diagnostics, "run_id", "attempt 2")) << failed.Problems();
  EXPECT_EQ(world.backend.runs_started, 2);
  Settle(driver, Config(R"("run_id":0)"));
  world.backend.run_failure.reset();
  Settle(driver, config);
  EXPECT_EQ(world.backend.runs_started, 3);
  EXPECT_EQ(driver.state().Get("attempts"), Value::Int(3));
  // One that succeeded does not run again.
  Settle(driver, Config(R"("run_id":0)"));
  Settle(driver, config);
  EXPECT_EQ(Text(driver, "phase"), "Succeeded");
  EXPECT_EQ(world.backend.runs_started, 3);
}

TEST_F(JobTest, TheHighestRunIdIsTheLast) {
  auto driver = world.Driver(kType);
  Settle(driver, Config(R"("run_id":9223372036854775807)"));
  const auto plan = driver.Plan(Config(R"("run_id":5)"));
  EXPECT_TRUE(HasError(plan.diagnostics, "run_id", "There is no higher one")) << plan.Problems();
}

TEST_F(JobTest, AFailedFirstRunIsTriedAgainUnderTheSameRunId) {
  world.backend.run_failure = Raised();
  auto driver = world.Driver(kType);
  const auto config = Config(R"("run_id":1)");
  EXPECT_FALSE(driver.Apply(config).Ok());
  EXPECT_TRUE(driver.tainted());
  EXPECT_EQ(world.backend.runs_started, 1);
  world.backend.TakeCalls();
  const auto second = driver.Apply(config);
  EXPECT_TRUE(HasError(second.diagnostics, "run_id", "attempt 2")) << second.Problems();
  EXPECT_EQ(world.backend.runs_started, 2);
  for (const auto& call : world.backend.TakeCalls())
    EXPECT_NE(call, "job.delete") << "the attempts would be forgotten";
  world.backend.run_failure.reset();
  Settle(driver, config);
  EXPECT_EQ(driver.state().Get("attempts"), Value::Int(3));
  EXPECT_FALSE(driver.tainted());
  EXPECT_FALSE(world.backend.Jobs().Look(kId).metadata.annotations.contains(
      std::string(api::kCreatingAnnotation)));
}

TEST_F(JobTest, ATimeoutLeavesTheRunAndTheNextApplyWaitsForIt) {
  world.backend.runs_hang = true;
  auto driver = world.Driver(kType);
  const auto config = Config(R"("run_id":1,"wait_timeout_sec":2)");
  const auto late = driver.Apply(config);
  EXPECT_TRUE(HasError(late.diagnostics, "wait_timeout_sec", "run 1 goes on at the server"))
      << late.Problems();
  EXPECT_TRUE(driver.tainted());
  EXPECT_EQ(Text(driver, "phase"), "Running");
  world.backend.runs_hang = false;
  Settle(driver, config);
  EXPECT_EQ(world.backend.runs_started, 1) << "the same run was waited for";
}

TEST_F(JobTest, ARunThatSucceededAfterATimeoutNeverRunsAgain) {
  world.backend.runs_hang = true;
  auto driver = world.Driver(kType);
  const auto config = Config(R"("run_id":2,"wait_timeout_sec":2)");
  EXPECT_FALSE(driver.Apply(config).Ok());
  EXPECT_TRUE(driver.tainted());
  world.backend.runs_hang = false;
  ASSERT_TRUE(world.backend.Jobs().WaitReady({"default", "j"}, 1, {}));
  ASSERT_TRUE(driver.Refresh().Ok());
  EXPECT_EQ(Text(driver, "phase"), "Succeeded");
  // Lowered: also seen where the plan has no prior state.
  EXPECT_TRUE(HasError(driver.Plan(Config(R"("run_id":1)")).diagnostics, "run_id", "run_id 2"));
  Settle(driver, config);
  EXPECT_EQ(world.backend.runs_started, 1);
  EXPECT_FALSE(driver.tainted());
  // One that was tainted by hand bears no mark of a create, and its plan has no prior state either.
  EXPECT_TRUE(HasError(world.Driver(kType).Plan(Config(R"("run_id":1)")).diagnostics, "run_id",
                       "run_id 2"));
}

TEST_F(JobTest, AnotherNameOfATaintedJobLeavesNothingBehind) {
  world.backend.runs_hang = true;
  auto driver = world.Driver(kType);
  EXPECT_FALSE(driver.Apply(Config(R"("run_id":1,"wait_timeout_sec":2)")).Ok());
  EXPECT_TRUE(driver.tainted());
  world.backend.runs_hang = false;
  Settle(driver, world.Config(kType, R"({"name":"k","function":"f","run_id":1})"));
  EXPECT_FALSE(world.backend.Jobs().Has(kId));
}

TEST_F(JobTest, ATimeoutOfARerunIsWaitedForToo) {
  auto driver = world.Driver(kType);
  Settle(driver, Config(R"("run_id":1)"));
  world.backend.runs_hang = true;
  EXPECT_FALSE(driver.Apply(Config(R"("run_id":2)")).Ok());
  ASSERT_TRUE(driver.Refresh().Ok());
  EXPECT_EQ(driver.Plan(Config(R"("run_id":2)")).action, PlannedAction::kUpdate);
  world.backend.runs_hang = false;
  Settle(driver, Config(R"("run_id":2)"));
  EXPECT_EQ(world.backend.runs_started, 2);
}

TEST_F(JobTest, DestroyOfATaintedJobIsReal) {
  world.backend.run_failure = Raised();
  auto driver = world.Driver(kType);
  EXPECT_FALSE(driver.Apply(Config(R"("run_id":1)")).Ok());
  const auto destroyed = driver.Destroy();
  EXPECT_TRUE(destroyed.Ok()) << destroyed.Problems();
  EXPECT_FALSE(world.backend.Jobs().Has(kId));
}

TEST_F(JobTest, AnotherNameIsAnotherJobAndTheOldOneGoes) {
  auto driver = world.Driver(kType);
  Settle(driver, Config(R"("run_id":1)"));
  world.backend.run_failure = Raised();
  EXPECT_FALSE(driver.Apply(Config(R"("run_id":2)")).Ok());
  world.backend.run_failure.reset();
  const auto renamed = world.Config(kType, R"({"name":"k","function":"f","run_id":1})");
  EXPECT_EQ(driver.Plan(renamed).action, PlannedAction::kReplace);
  Settle(driver, renamed);
  EXPECT_FALSE(world.backend.Jobs().Has(kId))
      << "the run had failed, but this replacement is wanted";
  EXPECT_EQ(world.backend.runs_started, 3);
}

TEST_F(JobTest, LostAnswersNeverRunTwice) {
  for (const char* call : {"job.create", "job.wait", "job.finish", "job.put", "job.retry"}) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE(std::string(call) + (after ? " after" : " before"));
      World fresh;
      auto driver = fresh.Driver(kType);
      const auto config = fresh.Config(kType, R"({"name":"j","function":"f","run_id":1})");
      fresh.backend.FailNext(call, {Code::kUnavailable, "connection lost", "", "", {}}, after);
      for (int i = 0; i < 2; ++i) {
        const auto applied = driver.Apply(config);
        EXPECT_TRUE(applied.violations.empty()) << applied.Problems();
      }
      const auto refreshed = driver.Refresh();
      EXPECT_TRUE(refreshed.Ok()) << refreshed.Problems();
      EXPECT_EQ(driver.Plan(config).action, PlannedAction::kNoOp);
      EXPECT_EQ(fresh.backend.runs_started, 1);
    }
  }
}

TEST_F(JobTest, ARunThatAnotherWriterOvertakesIsNotGreen) {
  const struct {
    const char* name;
    int64_t theirs;
    bool hangs;
    const char* phase;
  } rows[] = {{"raised", 13, false, "Succeeded"},
              {"raised and the run goes on", 13, true, "Running"},
              {"taken back", 0, false, "Skipped"}};
  for (const auto& row : rows) {
    for (const bool update : {false, true}) {
      SCOPED_TRACE(std::string(row.name) + (update ? ", update" : ", create"));
      World fresh;
      auto driver = fresh.Driver(kType);
      const auto config = [&](int run_id) {
        return fresh.Config(
            kType, R"({"name":"j","function":"f","run_id":)" + std::to_string(run_id) + "}");
      };
      if (update) {
        ASSERT_TRUE(driver.Apply(config(1)).Ok());
      }
      fresh.backend.runs_hang = row.hangs;
      fresh.backend.meanwhile = [&](const std::string& call) {
        if (call == "job.wait")
          fresh.backend.Jobs().Edit(kId, [&](api::Job& job) { job.spec.run_id = row.theirs; });
      };
      const auto applied = driver.Apply(config(12));
      EXPECT_TRUE(applied.violations.empty()) << applied.Problems();
      const auto theirs = "run_id " + std::to_string(row.theirs);
      for (const auto& part : {std::string("changed while this apply waited"),
                               std::string("run_id 12"), theirs, std::string("plan again")}) {
        EXPECT_TRUE(HasError(applied.diagnostics, "run_id", part)) << part << applied.Problems();
      }
      EXPECT_FALSE(HasError(applied.diagnostics, "run_id", "wait_timeout_sec"));
      EXPECT_EQ(driver.state().Get("run_id"), Value::Int(row.theirs)) << "what the server has";
      EXPECT_EQ(Text(driver, "phase"), row.phase);
      EXPECT_EQ(driver.tainted(), !update);

      // The next apply does what the configuration says, or says that it is behind.
      fresh.backend.meanwhile = {};
      fresh.backend.runs_hang = false;
      const auto again = driver.Apply(config(12));
      EXPECT_EQ(again.Ok(), row.theirs == 0) << again.Problems();
      EXPECT_EQ(HasError(again.diagnostics, "run_id", "run_id lowered"), row.theirs != 0);
      EXPECT_TRUE(driver.Apply(config(14)).Ok());
    }
  }
}

TEST_F(JobTest, TheSameWrittenAgainMeanwhileIsFine) {
  auto driver = world.Driver(kType);
  world.backend.meanwhile = [&](const std::string& call) {
    if (call != "job.wait") return;
    world.backend.Jobs().Edit(kId, [](api::Job& job) { ++job.metadata.generation; });
  };
  Settle(driver, Config(R"("run_id":1)"));
}

TEST_F(JobTest, DeletedMeanwhileSaysSo) {
  for (const char* at : {"job.wait", "job.retry"}) {
    for (const bool update : {false, true}) {
      SCOPED_TRACE(std::string(at) + (update ? ", update" : ", create"));
      World fresh;
      auto driver = fresh.Driver(kType);
      const auto config = fresh.Config(kType, R"({"name":"j","function":"f","run_id":2})");
      const auto first =
          fresh.Config(kType, R"({"name":"j","function":"f","run_id":)" +
                                  std::string(at == std::string("job.retry") ? "2}" : "1}"));
      if (at == std::string("job.retry")) fresh.backend.run_failure = Raised();
      if (update) {
        ASSERT_TRUE(driver.Apply(fresh.Config(kType, R"({"name":"j","function":"f"})")).Ok());
      }
      if (update || fresh.backend.run_failure) driver.Apply(first);
      fresh.backend.meanwhile = [&](const std::string& call) {
        if (call != at) return;
        fresh.backend.Jobs().Erase(kId);
        fresh.backend.FailNext(call, {Code::kNotFound, "job default/j does not exist", "", "", {}});
      };
      const auto gone = driver.Apply(config);
      EXPECT_TRUE(HasError(gone.diagnostics, "run_id",
                           "The job default/j is gone: somebody deleted it while this apply "
                           "waited for it. Plan and apply again."))
          << gone.Problems();
      EXPECT_FALSE(HasError(gone.diagnostics, "run_id", "does not exist"));
      EXPECT_EQ(driver.state().IsNull(), !update) << "the host keeps the prior one of an update";
      fresh.backend.meanwhile = {};
      fresh.backend.run_failure.reset();
      ASSERT_TRUE(driver.Refresh().Ok());
      EXPECT_TRUE(driver.state().IsNull());
      EXPECT_TRUE(driver.Apply(config).Ok());
    }
  }
}

TEST_F(JobTest, AMissingFunctionIsAnErrorOfThatAttribute) {
  world.backend.run_failure = api::Failure{
      "FunctionMissing", "function \"f\" does not exist in namespace \"default\"", "", 0, {}};
  const auto failed = world.Driver(kType).Apply(Config(R"("run_id":1)"));
  for (const char* part : {"function \"f\" does not exist", "sless_function.<label>.name"})
    EXPECT_TRUE(HasError(failed.diagnostics, "function", part)) << failed.Problems();
}

TEST_F(JobTest, ADeleteThatTakesLongSaysWhatGoesOn) {
  auto driver = world.Driver(kType);
  Settle(driver, Config(R"("run_id":1)"));
  world.backend.FailNext("job.gone", {Code::kDeadlineExceeded, "timed out", "", "", {}});
  const auto late = driver.Destroy();
  EXPECT_TRUE(HasError(late.diagnostics, "name", "The server goes on with it")) << late.Problems();
  EXPECT_FALSE(HasError(late.diagnostics, "name", "timeout ")) << "there is none to raise";
}

TEST_F(JobTest, ImportIsQuietAndRunsNothing) {
  const auto config =
      Config(R"("run_id":2,"event_json":"{\"n\":5}","wait_timeout_sec":77,"max_retries":1)");
  auto creator = world.Driver(kType);
  Settle(creator, config);
  auto importer = world.Driver(kType);
  ASSERT_TRUE(importer.Import(kId).Ok());
  EXPECT_EQ(importer.state(), creator.state());
  ExpectQuiet(importer, config);
  EXPECT_TRUE(HasError(importer.Plan(Config(R"("run_id":1)")).diagnostics, "run_id", "run_id 2"));
  EXPECT_EQ(world.backend.runs_started, 1);
}

TEST_F(JobTest, UnknownRunIdAndEvent) {
  auto driver = world.Driver(kType);
  const auto plan = driver.Plan(Config(R"("event_json":"<unknown>","run_id":1)"));
  EXPECT_TRUE(plan.Ok()) << plan.Problems();
  const auto applied = driver.Apply(Config(R"("event_json":"<unknown>","run_id":1)"),
                                    Config(R"("event_json":"{\"n\":1}","run_id":1)"));
  EXPECT_TRUE(applied.Ok()) << applied.Problems();
  // A run_id that is not known yet: all may happen, nothing is promised.
  auto later = Config(R"("event_json":"{\"n\":1}")").With("run_id", Value::Unknown());
  EXPECT_EQ(driver.Plan(later).planned.Get("phase").IsUnknown(), true);
  const auto zero = driver.Apply(later, Config(R"("event_json":"{\"n\":1}","run_id":0)"));
  EXPECT_TRUE(zero.Ok()) << zero.Problems();
  EXPECT_EQ(Text(driver, "phase"), "Skipped");
}

TEST_F(JobTest, RandomChains) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    World fresh;
    auto driver = fresh.Driver(kType);
    int64_t last = 0;
    for (int step = 0; step < 15; ++step) {
      const int64_t run_id =
          random() % 3 == 0 ? 0 : last + static_cast<int64_t>(random() % 2) + (last == 0 ? 1 : 0);
      const std::string event = std::string("{\\\"n\\\":") + std::to_string(random() % 3) + "}";
      const auto config =
          fresh.Config(kType, R"({"name":"j","function":"f","run_id":)" + std::to_string(run_id) +
                                  R"(,"event_json":")" + event + "\"}");
      if (random() % 4 == 0) fresh.backend.run_failure = Raised();
      fresh.backend.runs_hang = random() % 6 == 0;
      const auto applied = driver.Apply(config);
      EXPECT_TRUE(applied.violations.empty()) << applied.Problems();
      fresh.backend.run_failure.reset();
      fresh.backend.runs_hang = false;
      last = std::max(last, run_id);
      if (random() % 2 == 0) {
        EXPECT_TRUE(driver.Refresh().Ok());
      }
      if (applied.diagnostics.HasError()) continue;
      const int started = fresh.backend.runs_started;
      EXPECT_EQ(driver.Plan(config).action, PlannedAction::kNoOp);
      EXPECT_TRUE(driver.Apply(config).Ok());
      EXPECT_EQ(fresh.backend.runs_started, started) << "a second apply runs nothing";
    }
    EXPECT_TRUE(driver.Destroy().Ok());
    EXPECT_FALSE(fresh.backend.Jobs().Has(kId));
  }
}

}  // namespace
}  // namespace sless::resources
