#include <gtest/gtest.h>

#include <random>

#include "provider/resources/testing/world.h"

namespace sless::resources {
namespace {

using base::Code;
using cty::Value;
using framework::testing::PlannedAction;
using Names = std::set<std::string>;

constexpr const char* kType = "sless_function";
constexpr const char* kId = "default/f";
const char* kHandler = "def handle(event, context):\n    return 1\n";

class FunctionTest : public testing::Test {
 protected:
  void SetUp() override { world.Write("src/handler.py", kHandler); }
  std::string Dir(const std::string& name = "src") const { return (world.dir / name).string(); }
  Value Config(const std::string& more = "", const std::string& source = "src") const {
    return world.Config(kType, R"({"name":"f","runtime":"python3.11","source_dir":")" +
                                   Dir(source) + '"' + (more.empty() ? "" : "," + more) + "}");
  }
  // Applies, and the next plan is empty with and without a refresh.
  void Settle(framework::testing::CoreDriver& driver, const Value& config) {
    const auto applied = driver.Apply(config);
    ASSERT_TRUE(applied.Ok()) << applied.Problems();
    ExpectQuiet(driver, config);
  }
  void ExpectQuiet(framework::testing::CoreDriver& driver, const Value& config) {
    auto plan = driver.Plan(config);
    EXPECT_EQ(plan.action, PlannedAction::kNoOp)
        << plan.planned.ToString() << "\nnot " << driver.state().ToString() << plan.Problems();
    const auto refreshed = driver.Refresh();
    ASSERT_TRUE(refreshed.Ok()) << refreshed.Problems();
    plan = driver.Plan(config);
    EXPECT_EQ(plan.action, PlannedAction::kNoOp)
        << plan.planned.ToString() << "\nnot " << driver.state().ToString() << plan.Problems();
  }
  World world;
};

api::Failure Broken() {
  return {"StartFailed",
          "RuntimeError: broken at start",
          "handler.py",
          3,
          {"Traceback", "RuntimeError: broken at start"}};
}

TEST_F(FunctionTest, LivesFromCreateToDestroy) {
  auto driver = world.Driver(kType);
  const auto plan = driver.Plan(Config());
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_EQ(plan.planned.Get("id"), Value::String(kId));
  EXPECT_TRUE(plan.planned.Get("source_hash").AsString().starts_with("sha256:"))
      << "the hash is known in the plan";
  EXPECT_TRUE(plan.planned.Get("revision").IsUnknown());
  Settle(driver, Config());
  EXPECT_EQ(driver.state().Get("phase"), Value::String("Ready"));
  EXPECT_EQ(driver.state().Get("revision"), Value::Int(1));
  EXPECT_EQ(driver.state().Get("source_hash"), plan.planned.Get("source_hash"));
  EXPECT_FALSE(world.backend.Functions().Look(kId).metadata.annotations.contains(
      std::string(api::kCreatingAnnotation)))
      << "the mark of the create is gone";

  world.Write("src/handler.py", std::string(kHandler) + "# edited\n");
  EXPECT_EQ(Changed(driver.state(), driver.Plan(Config()).planned),
            (Names{"source_hash", "revision", "last_built_at"}));
  Settle(driver, Config());
  EXPECT_EQ(driver.state().Get("revision"), Value::Int(2));

  const auto gone = driver.Destroy();
  EXPECT_TRUE(gone.Ok()) << gone.Problems();
  EXPECT_FALSE(world.backend.Functions().Has(kId));
  EXPECT_TRUE(driver.state().IsNull());
}

TEST_F(FunctionTest, EachAttributeAloneMovesWhatItMust) {
  world.Write("src/handler.py", std::string(kHandler) + "def other(event):\n    return 2\n");
  const Names revision = {"revision"};
  const struct {
    const char* more;
    Names changed;
  } rows[] = {
      {R"("environment":{"A":"x"})", {"environment", "revision"}},
      {R"("environment":{"A":"y"})", {"environment", "revision"}},
      {R"("environment":{})", {"environment", "revision"}},
      {R"("labels":{"a":"b"})", {"environment", "labels"}},
      {R"("labels":{"a":"c"})", {"labels"}},
      {R"("memory_mb":300)", {"labels", "memory_mb", "revision"}},
      {R"("timeout_sec":5)", {"memory_mb", "timeout_sec", "revision"}},
      {R"("concurrency":5)", {"timeout_sec", "concurrency", "revision"}},
      {R"("concurrency":5,"replicas":2)", {"replicas"}},
      {R"("concurrency":5,"replicas":0)", {"replicas"}},
      {R"("concurrency":5,"min_replicas":1)", {"replicas", "min_replicas"}},
      {R"("concurrency":5,"min_replicas":1,"max_replicas":3)", {"max_replicas"}},
      {R"("concurrency":5,"idle_timeout_sec":9)",
       {"min_replicas", "max_replicas", "idle_timeout_sec"}},
      {R"("concurrency":5,"build_timeout_sec":9)", {"idle_timeout_sec", "build_timeout_sec"}},
      {R"("concurrency":5,"code_hash":"a")",
       {"build_timeout_sec", "code_hash", "revision", "last_built_at"}},
      {R"("concurrency":5,"code_hash":"")", {"code_hash", "revision", "last_built_at"}},
      {R"("concurrency":5)", {"code_hash", "revision", "last_built_at"}},
      {R"("concurrency":5,"entrypoint":"handler.other")", {"entrypoint", "revision"}},
      {R"("concurrency":5,"entrypoint":"handler.other","timeouts":{"create":"5m"})", {"timeouts"}},
  };
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  for (const auto& row : rows) {
    SCOPED_TRACE(row.more);
    const auto plan = driver.Plan(Config(row.more));
    EXPECT_TRUE(plan.Ok()) << plan.Problems();
    EXPECT_EQ(plan.action, PlannedAction::kUpdate);
    EXPECT_EQ(Changed(driver.state(), plan.planned), row.changed);
    Settle(driver, Config(row.more));
  }
}

TEST_F(FunctionTest, FromNullToAnEmptyMapMovesNothingAtTheServer) {
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  const struct {
    const char* more;
    Names changed;
  } rows[] = {{R"("environment":{})", {"environment"}},
              {R"("labels":{})", {"environment", "labels"}},
              {"", {"labels"}}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.more);
    EXPECT_EQ(Changed(driver.state(), driver.Plan(Config(row.more)).planned), row.changed);
    Settle(driver, Config(row.more));
  }
  EXPECT_EQ(driver.state().Get("revision"), Value::Int(1));
}

TEST_F(FunctionTest, TextsThatAreTooLongAreNotShown) {
  auto driver = world.Driver(kType);
  const auto plan =
      driver.Plan(Config(R"("labels":{"a":"topsecret)" + std::string(300, 'x') + "\"}"));
  EXPECT_TRUE(HasError(plan.diagnostics, "labels[\"a\"]", "at most 256 bytes, not 309"))
      << plan.Problems();
  EXPECT_EQ(plan.Problems().find("topsecret"), std::string::npos);
}

TEST_F(FunctionTest, OtherPathOfTheSameCodeTouchesNothing) {
  world.Write("copy/handler.py", kHandler);
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  const auto before = driver.state();
  world.backend.TakeCalls();
  EXPECT_EQ(Changed(driver.state(), driver.Plan(Config("", "copy")).planned),
            (Names{"source_dir"}));
  Settle(driver, Config("", "copy"));
  for (const auto& call : world.backend.TakeCalls()) EXPECT_NE(call, "upload");
  EXPECT_EQ(driver.state().Get("revision"), before.Get("revision"));
  EXPECT_EQ(driver.state().Get("last_built_at"), before.Get("last_built_at"));
  EXPECT_EQ(world.backend.Functions().Look(kId).spec.source.path, Dir("copy"));
}

TEST_F(FunctionTest, TimeoutsAloneAskNothingOfTheServer) {
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  world.backend.TakeCalls();
  const auto applied = driver.Apply(Config(R"("timeouts":{"update":"90s"})"));
  EXPECT_TRUE(applied.Ok()) << applied.Problems();
  EXPECT_TRUE(world.backend.TakeCalls().empty());
  ExpectQuiet(driver, Config(R"("timeouts":{"update":"90s"})"));
}

TEST_F(FunctionTest, FailedCreateIsKeptAndSaysWhere) {
  world.backend.build_failure = Broken();
  auto driver = world.Driver(kType);
  const auto failed = driver.Apply(Config());
  EXPECT_TRUE(HasError(failed.diagnostics, "source_dir", "broken at start")) << failed.Problems();
  for (const char* part : {"phase Failed", "StartFailed", "handler.py:3", "Traceback"}) {
    EXPECT_TRUE(HasError(failed.diagnostics, "source_dir", part)) << part << "\n"
                                                                  << failed.Problems();
  }
  EXPECT_TRUE(failed.violations.empty()) << failed.Problems();
  EXPECT_TRUE(driver.tainted());
  EXPECT_EQ(driver.state().Get("id"), Value::String(kId));
  EXPECT_EQ(driver.state().Get("source_hash"), Value::String("")) << "nothing serves";
  world.backend.build_failure.reset();
  Settle(driver, Config());
  EXPECT_FALSE(driver.tainted());
}

TEST_F(FunctionTest, FailedUpdateShowsWhatServes) {
  auto driver = world.Driver(kType);
  Settle(driver, Config(R"("environment":{"A":"old"})"));
  const auto good = driver.state().Get("source_hash");
  world.backend.build_failure = Broken();
  world.Write("src/handler.py", std::string(kHandler) + "# broken\n");
  const auto config = Config(R"("environment":{"A":"new"})");
  const auto failed = driver.Apply(config);
  EXPECT_TRUE(HasError(failed.diagnostics, "source_dir", "Revision 1 serves on"))
      << failed.Problems();
  EXPECT_FALSE(driver.tainted());
  EXPECT_EQ(driver.state().Get("source_hash"), good);
  EXPECT_EQ(driver.state().Get("environment").Get("A"), Value::String("old"));
  EXPECT_EQ(driver.state().Get("phase"), Value::String("Failed"));
  ASSERT_TRUE(driver.Refresh().Ok());
  const auto changed = Changed(driver.state(), driver.Plan(config).planned);
  EXPECT_TRUE(changed.contains("source_hash") && changed.contains("environment") &&
              changed.contains("phase"));

  // The same again, with a world that has become well: the failed generation is tried once more.
  world.backend.build_failure.reset();
  const auto generation = world.backend.Functions().Look(kId).metadata.generation;
  Settle(driver, config);
  EXPECT_EQ(world.backend.Functions().Look(kId).metadata.generation, generation)
      << "the wish is the same";
}

TEST_F(FunctionTest, FailedUpdateTakenBackIsReadyAgain) {
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  world.backend.build_failure = Broken();
  EXPECT_FALSE(driver.Apply(Config(R"("memory_mb":300)")).Ok());
  Settle(driver, Config());
  EXPECT_EQ(driver.state().Get("revision"), Value::Int(1));
}

TEST_F(FunctionTest, DeadlineSaysHowToWaitLonger) {
  world.backend.builds_hang = true;
  auto driver = world.Driver(kType);
  const auto failed = driver.Apply(Config(R"("timeouts":{"create":"7s"})"));
  EXPECT_TRUE(HasError(failed.diagnostics, "name", "timeouts block")) << failed.Problems();
  EXPECT_TRUE(HasError(failed.diagnostics, "name", "here 7 s")) << failed.Problems();
  EXPECT_TRUE(failed.violations.empty()) << failed.Problems();
  EXPECT_EQ(driver.state().Get("phase"), Value::String("Building"));
  world.backend.builds_hang = false;
  Settle(driver, Config(R"("timeouts":{"create":"7s"})"));
}

TEST_F(FunctionTest, LostAnswersNeverNeedHandWork) {
  for (const char* call :
       {"info", "upload", "function.create", "function.wait", "function.finish"}) {
    for (const bool after : {false, true}) {
      SCOPED_TRACE(std::string(call) + (after ? " after" : " before"));
      World fresh;
      fresh.Write("src/handler.py", kHandler);
      auto driver = fresh.Driver(kType);
      const auto config =
          fresh.Config(kType, R"({"name":"f","runtime":"python3.11","source_dir":")" +
                                  (fresh.dir / "src").string() + "\"}");
      fresh.backend.FailNext(call, {Code::kUnavailable, "connection lost", "", "", {}}, after);
      const auto first = driver.Apply(config);
      EXPECT_TRUE(first.violations.empty()) << first.Problems();
      for (const auto& item : first.diagnostics) EXPECT_TRUE(item.path.has_value());
      fresh.clock.Steady();
      for (int i = 0; i < 20; ++i) fresh.clock.Steady();  // a kept error of info has become old
      Settle(driver, config);
      EXPECT_TRUE(fresh.backend.Functions().Has(kId));
    }
  }
}

TEST_F(FunctionTest, UpdateTriesAgainWhereSomebodyElseWrote) {
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  world.backend.FailNext("function.put", {Code::kAborted, "changed meanwhile", "", "", {}});
  Settle(driver, Config(R"("memory_mb":300)"));
}

TEST_F(FunctionTest, ServerErrorsPointAtTheAttribute) {
  auto driver = world.Driver(kType);
  world.backend.FailNext("function.create",
                         {Code::kInvalidArgument, "too much", "/spec/memoryMb", "", {}});
  EXPECT_TRUE(HasError(driver.Apply(Config()).diagnostics, "memory_mb", "too much"));
  world.backend.FailNext("function.create",
                         {Code::kInvalidArgument, "bad name", "/spec/environment/A~1B", "", {}});
  EXPECT_TRUE(HasError(driver.Apply(Config()).diagnostics, "environment[\"A/B\"]", "bad name"));
  world.backend.FailNext("upload", {Code::kTooLarge, "too large", "", "", {}});
  EXPECT_TRUE(HasError(driver.Apply(Config()).diagnostics, "source_dir", "too large"));
  EXPECT_TRUE(driver.state().IsNull());
}

TEST_F(FunctionTest, NotOursIsRefused) {
  auto ours = world.Driver(kType);
  Settle(ours, Config());
  auto other = world.Driver(kType);
  const auto refused = other.Apply(Config(R"("memory_mb":300)"));
  EXPECT_TRUE(HasError(refused.diagnostics, "name", "already exists")) << refused.Problems();
  EXPECT_TRUE(other.state().IsNull());
  EXPECT_EQ(world.backend.Functions().Look(kId).spec.memory_mb, 256);
}

TEST_F(FunctionTest, DriftShowsAndIsUndone) {
  auto driver = world.Driver(kType);
  const auto config = Config(R"("environment":{"A":"mine"})");
  Settle(driver, config);
  world.backend.Functions().Edit(kId, [](auto& f) { f.spec.environment["A"] = "theirs"; });
  ASSERT_TRUE(driver.Refresh().Ok());
  EXPECT_TRUE(Changed(driver.state(), driver.Plan(config).planned).contains("environment"));
  Settle(driver, config);
  EXPECT_EQ(world.backend.Functions().Look(kId).spec.environment.at("A"), "mine");
}

TEST_F(FunctionTest, GoneOutsideIsCreatedAgainAndDeletedTwiceIsFine) {
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  world.backend.Functions().Erase(kId);
  ASSERT_TRUE(driver.Refresh().Ok());
  EXPECT_TRUE(driver.state().IsNull());
  Settle(driver, Config());
  world.backend.Functions().Erase(kId);
  EXPECT_TRUE(driver.Destroy().Ok());
}

TEST_F(FunctionTest, ACreateThatAnotherOneTakesOverIsNotGreen) {
  auto driver = world.Driver(kType);
  world.backend.meanwhile = [&](const std::string& call) {
    if (call != "function.wait") return;
    world.backend.Functions().Edit(kId, [](api::Function& function) {
      function.metadata.annotations[std::string(api::kOwnerAnnotation)] = "another";
    });
  };
  const auto taken = driver.Apply(Config());
  EXPECT_TRUE(HasError(taken.diagnostics, "name", "taken over by another create"))
      << taken.Problems();
  // Nothing of it is there, so no later apply may delete the other's.
  EXPECT_TRUE(driver.state().IsNull());
  world.backend.meanwhile = {};

  auto deleted = world.Driver(kType);
  world.backend.Functions().Erase(kId);
  world.backend.meanwhile = [&](const std::string& call) {
    if (call == "function.finish") world.backend.Functions().Erase(kId);
  };
  const auto gone = deleted.Apply(Config());
  EXPECT_TRUE(HasError(gone.diagnostics, "name", "deleted it while it was created"))
      << gone.Problems();
}

TEST_F(FunctionTest, ChangedWhileTheApplyWaitsIsNotGreen) {
  for (const bool update : {false, true}) {
    for (const bool hangs : {false, true}) {
      SCOPED_TRACE(std::string(update ? "update" : "create") + (hangs ? ", hangs" : ""));
      world.backend.Functions().Erase(kId);
      auto driver = world.Driver(kType);
      if (update) Settle(driver, Config());
      world.backend.builds_hang = hangs;
      world.backend.meanwhile = [&](const std::string& call) {
        if (call != "function.wait") return;
        world.backend.Functions().Edit(kId, [](api::Function& function) {
          function.spec.environment = {{"E", "theirs"}};
        });
      };
      const auto changed = driver.Apply(Config(R"("environment":{"E":"mine"})"));
      EXPECT_TRUE(changed.violations.empty()) << changed.Problems();
      for (const char* part : {"The function default/f changed while this apply waited",
                               "wrote generation", "is not known", "plan again"}) {
        EXPECT_TRUE(HasError(changed.diagnostics, "name", part)) << changed.Problems();
      }
      EXPECT_FALSE(HasError(changed.diagnostics, "name", "timeouts block"));
      EXPECT_EQ(driver.state().Get("environment").AsMap().at("E"), Value::String("theirs"));
      EXPECT_EQ(driver.tainted(), !update);
      world.backend.meanwhile = {};
      world.backend.builds_hang = false;
      Settle(driver, Config(R"("environment":{"E":"mine"})"));
    }
  }
}

TEST_F(FunctionTest, TheSameWrittenAgainMeanwhileIsFine) {
  auto driver = world.Driver(kType);
  world.backend.meanwhile = [&](const std::string& call) {
    if (call != "function.wait") return;
    world.backend.Functions().Edit(kId,
                                   [](api::Function& function) { ++function.metadata.generation; });
  };
  const auto applied = driver.Apply(Config());
  EXPECT_TRUE(applied.Ok()) << applied.Problems();
}

TEST_F(FunctionTest, DeletedWhileTheApplyWaitsSaysSo) {
  for (const bool update : {false, true}) {
    for (const bool again : {false, true}) {
      SCOPED_TRACE(std::string(update ? "update" : "create") + (again ? ", made anew" : ""));
      world.backend.Functions().Erase(kId);
      auto driver = world.Driver(kType);
      if (update) Settle(driver, Config());
      world.backend.meanwhile = [&](const std::string& call) {
        if (call != "function.wait") return;
        auto other = world.backend.Functions().Look(kId);
        world.backend.Functions().Erase(kId);
        other.spec.environment = {{"E", "theirs"}};
        if (again) world.backend.Functions().Create(other, {});
      };
      const auto gone = driver.Apply(Config(R"("environment":{"E":"mine"})"));
      EXPECT_TRUE(HasError(gone.diagnostics, "name",
                           "The function default/f is gone: somebody deleted it while this apply "
                           "waited for it. Plan and apply again."))
          << gone.Problems();
      EXPECT_EQ(driver.state().IsNull(), !update) << "the host keeps the prior one of an update";
      world.backend.meanwhile = {};
    }
  }
}

TEST_F(FunctionTest, ACreateThatAnotherOneTakesOverAndChangesKeepsNothing) {
  auto driver = world.Driver(kType);
  world.backend.meanwhile = [&](const std::string& call) {
    if (call != "function.wait") return;
    world.backend.Functions().Edit(kId, [](api::Function& function) {
      function.metadata.annotations[std::string(api::kOwnerAnnotation)] = "another";
      function.spec.memory_mb = 999;
    });
  };
  const auto taken = driver.Apply(Config());
  EXPECT_TRUE(HasError(taken.diagnostics, "name", "taken over by another create"))
      << taken.Problems();
  EXPECT_TRUE(driver.state().IsNull());
}

TEST_F(FunctionTest, ADeadlineShowsWhatTheNewRevisionSaid) {
  auto driver = world.Driver(kType);
  world.backend.builds_hang = true;
  auto failed = driver.Apply(Config());
  EXPECT_TRUE(HasError(failed.diagnostics, "name", "Last log lines:\n  of revision 1"))
      << failed.Problems();
  const auto says_nothing = [&] {
    EXPECT_TRUE(HasError(failed.diagnostics, "name", "The server goes on with it"))
        << failed.Problems();
    EXPECT_FALSE(HasError(failed.diagnostics, "name", "Last log lines")) << failed.Problems();
  };
  world.backend.FailNext("function.logs", {Code::kUnavailable, "away", "", "", {}});
  failed = driver.Apply(Config());
  says_nothing();
  world.backend.builds_hang = false;
  Settle(driver, Config());
  // What is waited for then is no new revision.
  world.backend.FailNext("function.wait", {Code::kDeadlineExceeded, "timed out", "", "", {}});
  failed = driver.Apply(Config(R"("labels":{"a":"b"})"));
  says_nothing();
}

TEST_F(FunctionTest, WhatCanBeRaisedIsSaidWhereItRanOut) {
  auto driver = world.Driver(kType);
  const base::Error late{Code::kDeadlineExceeded, "timed out", "", "", {}};
  for (const bool ran_out : {false, true}) {
    world.backend.FailNext("upload", late);
    const auto failed = driver.Apply(Config(ran_out ? R"("timeouts":{"create":"1s"})" : ""));
    EXPECT_TRUE(HasError(failed.diagnostics, "source_dir", "timed out")) << failed.Problems();
    EXPECT_EQ(HasError(failed.diagnostics, "source_dir", "timeouts block"), ran_out)
        << failed.Problems();
  }
  Settle(driver, Config(R"("timeouts":{"delete":"1s"})"));
  world.backend.FailNext("function.gone", late);
  const auto failed = driver.Destroy();
  for (const char* part : {"The server goes on with it", "here 1 s at most, by default 120 s"})
    EXPECT_TRUE(HasError(failed.diagnostics, "name", part)) << failed.Problems();
}

TEST_F(FunctionTest, DestroyOfAnImportedOneLeavesWhatACreateTookOver) {
  auto creator = world.Driver(kType);
  Settle(creator, Config());
  auto importer = world.Driver(kType);
  ASSERT_TRUE(importer.Import(kId).Ok());
  ASSERT_TRUE(importer.Refresh().Ok());
  auto second = world.Driver(kType);
  Settle(second, Config());
  const auto left = importer.Destroy();
  EXPECT_TRUE(left.Ok()) << left.Problems();
  EXPECT_NE(left.diagnostics.ToString().find("taken over by another create"), std::string::npos);
  EXPECT_TRUE(world.backend.Functions().Has(kId));
  // One that nobody took over goes.
  auto again = world.Driver(kType);
  ASSERT_TRUE(again.Import(kId).Ok());
  ASSERT_TRUE(again.Refresh().Ok());
  EXPECT_TRUE(again.Destroy().Ok());
  EXPECT_FALSE(world.backend.Functions().Has(kId));
}

TEST_F(FunctionTest, ATaintedOneThatAnotherTookOverIsNotDeleted) {
  auto driver = world.Driver(kType);
  world.backend.build_failure = api::Failure{"BuildFailed", "no", "", 0, {}};
  EXPECT_FALSE(driver.Apply(Config()).Ok());
  ASSERT_TRUE(driver.tainted());
  world.backend.build_failure.reset();
  auto other = world.Driver(kType);
  Settle(other, Config(R"("memory_mb":512)"));
  const auto uid = world.backend.Functions().Look(kId).metadata.uid;
  const auto refused = driver.Apply(Config());
  EXPECT_TRUE(HasError(refused.diagnostics, "name", "already exists")) << refused.Problems();
  EXPECT_EQ(world.backend.Functions().Look(kId).metadata.uid, uid);
  EXPECT_EQ(other.Plan(Config(R"("memory_mb":512)")).action, PlannedAction::kNoOp);
}

// As with create_before_destroy: the replacement's create finds its own predecessor.
TEST_F(FunctionTest, DestroyLeavesWhatAnotherCreateTookOver) {
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  auto second = world.Driver(kType);
  Settle(second, Config());
  const auto left = driver.Destroy();
  EXPECT_TRUE(left.Ok()) << left.Problems();
  ASSERT_EQ(left.diagnostics.size(), 1u);
  EXPECT_NE(left.diagnostics.ToString().find("taken over by another create"), std::string::npos);
  EXPECT_TRUE(world.backend.Functions().Has(kId));
  EXPECT_TRUE(second.Destroy().Ok());
  EXPECT_FALSE(world.backend.Functions().Has(kId));
}

TEST_F(FunctionTest, ForbiddenReadIsAnErrorAndKeepsTheState) {
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  world.backend.FailNext("function.get", {Code::kPermissionDenied, "not for you", "", "", {}});
  const auto read = driver.Refresh();
  EXPECT_TRUE(HasError(read.diagnostics, "name", "not for you"));
  EXPECT_FALSE(driver.state().IsNull());
}

TEST_F(FunctionTest, ImportIsQuiet) {
  const std::string full =
      R"("environment":{"A":"b"},"labels":{"l":"m"},"memory_mb":200,"timeout_sec":20,"concurrency":2,"min_replicas":1,"max_replicas":2,)"
      R"("idle_timeout_sec":100,"build_timeout_sec":90,"code_hash":"abc")";
  const std::string empty = R"("environment":{},"labels":{},"code_hash":"")";
  auto creator = world.Driver(kType);
  for (const auto& more : {empty, full, empty, std::string()}) {
    SCOPED_TRACE(more);
    Settle(creator, Config(more));
    auto importer = world.Driver(kType);
    const auto imported = importer.Import(kId);
    ASSERT_TRUE(imported.Ok()) << imported.Problems();
    EXPECT_EQ(importer.state(), creator.state());
    ExpectQuiet(importer, Config(more));
  }
}

TEST_F(FunctionTest, ImportOfAnotherNamespaceStaysThere) {
  auto creator = world.Driver(kType);
  Settle(creator, Config(R"("namespace":"shop")"));
  auto importer = world.Driver(kType);
  ASSERT_TRUE(importer.Import("shop/f").Ok());
  ExpectQuiet(importer, Config());
}

TEST_F(FunctionTest, ImportExplainsWrongIds) {
  const struct {
    const char* id;
    const char* text;
  } rows[] = {{"f", "Did you mean \"default/f\"?"},
              {"a/b/c", "namespace/name"},
              {"A/f", "only a-z"},
              {"default/", "empty"},
              {"/f", "empty"},
              {"default/../x", "namespace/name"}};
  for (const auto& row : rows) {
    auto driver = world.Driver(kType);
    const auto imported = driver.Import(row.id);
    EXPECT_TRUE(HasError(imported.diagnostics, "id", row.text))
        << row.id << ": " << imported.Problems();
  }
  auto driver = world.Driver(kType);
  EXPECT_FALSE(driver.Import("default/absent").Ok());
}

TEST_F(FunctionTest, SourceUnknownAtPlan) {
  auto driver = world.Driver(kType);
  const auto at_plan =
      world.Config(kType, R"({"name":"f","runtime":"python3.11","source_code":"<unknown>"})");
  const auto at_apply = world.Config(
      kType,
      R"({"name":"f","runtime":"python3.11","source_code":"def handle(event):\n    return 7\n"})");
  EXPECT_TRUE(driver.Plan(at_plan).planned.Get("source_hash").IsUnknown());
  const auto applied = driver.Apply(at_plan, at_apply);
  ASSERT_TRUE(applied.Ok()) << applied.Problems();
  ExpectQuiet(driver, at_apply);
  EXPECT_EQ(world.backend.Functions().Look(kId).spec.source.code,
            "def handle(event):\n    return 7\n");
}

TEST_F(FunctionTest, AnUnknownNamespaceIsNotTheProviders) {
  auto driver = world.Driver(kType);
  const auto config = [&](const std::string& ns) {
    return world.Config(kType, R"({"name":"f","runtime":"python3.11","source_dir":")" + Dir() +
                                   R"(","namespace":")" + ns + "\"}");
  };
  const auto plan = driver.Plan(config("<unknown>"));
  EXPECT_TRUE(plan.planned.Get("namespace").IsUnknown());
  EXPECT_TRUE(plan.planned.Get("id").IsUnknown());
  const auto applied = driver.Apply(config("<unknown>"), config("b"));
  ASSERT_TRUE(applied.Ok()) << applied.Problems();
  EXPECT_TRUE(world.backend.Functions().Has("b/f"));
}

TEST_F(FunctionTest, ADefaultBesideAFixedCountIsNoConflict) {
  auto driver = world.Driver(kType);
  Settle(driver, Config(R"("replicas":2,"min_replicas":0,"max_replicas":5)"));
}

TEST_F(FunctionTest, NameAndNamespaceReplace) {
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  const auto config =
      world.Config(kType, R"({"name":"g","runtime":"python3.11","source_dir":")" + Dir() + "\"}");
  EXPECT_EQ(driver.Plan(config).action, PlannedAction::kReplace);
  Settle(driver, config);
  EXPECT_FALSE(world.backend.Functions().Has(kId));
  EXPECT_EQ(driver.Plan(Config(R"("namespace":"b")")).action, PlannedAction::kReplace);
}

TEST_F(FunctionTest, DestroyNeedsNoSource) {
  auto driver = world.Driver(kType);
  Settle(driver, Config());
  std::filesystem::remove_all(world.dir / "src");
  EXPECT_TRUE(driver.Destroy().Ok());
}

TEST_F(FunctionTest, AServerThatIsNotThereIsAskedOnce) {
  for (int i = 0; i < 50; ++i)
    world.backend.FailNext("info", {Code::kUnavailable, "connection refused", "", "", {}});
  auto driver = world.Driver(kType);
  auto plan = driver.Plan(Config());
  EXPECT_TRUE(HasError(plan.diagnostics, "name", "SLESS_ENDPOINT")) << plan.Problems();
  EXPECT_TRUE(HasError(plan.diagnostics, "name", "http://sless.test")) << plan.Problems();
  driver.Plan(Config());
  EXPECT_EQ(world.backend.TakeCalls(), std::vector<std::string>{"info"})
      << "an error is kept for a while";
  EXPECT_LT(world.backend.info_deadline.at - base::SteadyPoint{}, std::chrono::seconds(12))
      << "a server that is silent is given up soon";
}

TEST_F(FunctionTest, AServerThatStandsStillIsToldSo) {
  world.backend.FailNext("info", {Code::kDeadlineExceeded, "timed out after 8.0 s", "", "", {}});
  const auto plan = world.Driver(kType).Plan(Config());
  for (const char* part : {"http://sless.test did not answer within 8 s", "SLESS_ENDPOINT"})
    EXPECT_TRUE(HasError(plan.diagnostics, "name", part)) << plan.Problems();
  EXPECT_FALSE(HasError(plan.diagnostics, "name", "Raise")) << "no setting raises it";
}

TEST_F(FunctionTest, AWrongTokenNamesTheSetting) {
  world.backend.FailNext("info", {Code::kUnauthenticated, "no such token", "", "", {}});
  const auto plan = world.Driver(kType).Plan(Config());
  EXPECT_TRUE(HasError(plan.diagnostics, "name", "SLESS_TOKEN")) << plan.Problems();
}

TEST(FunctionUnconnected, PlansWithoutServerAndNeverGuesses) {
  World world(false, std::nullopt);
  world.Write("src/handler.py", kHandler);
  auto driver = world.Driver(kType);
  const auto config = world.Config(kType, R"({"name":"f","runtime":"python3.11","source_dir":")" +
                                              (world.dir / "src").string() + "\"}");
  const auto plan = driver.Plan(config);
  EXPECT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_TRUE(plan.planned.Get("namespace").IsUnknown());
  EXPECT_TRUE(plan.planned.Get("id").IsUnknown());
  EXPECT_TRUE(plan.planned.Get("source_hash").IsKnown());
  EXPECT_FALSE(driver.Import("default/f").Ok());
  const auto applied = driver.Apply(config);
  EXPECT_TRUE(HasError(applied.diagnostics, "name", "endpoint")) << applied.Problems();
  EXPECT_TRUE(world.backend.TakeCalls().empty());
}

// Random chains of configurations and failures: no breach of the host's rules, no plan that never
// gets quiet, and the server ends with what the configuration says.
TEST_F(FunctionTest, RandomChains) {
  world.Write("src/handler.py", kHandler);
  world.Write("two/handler.py", std::string(kHandler) + "# two\n");
  for (unsigned seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto pick = [&](std::vector<std::string> of) { return of[random() % of.size()]; };
    auto driver = world.Driver(kType);
    for (int step = 0; step < 10; ++step) {
      std::string more = pick({"", R"("environment":{"A":"1"},)", R"("environment":{},)",
                               R"("environment":{"A":"2","B":""},)"});
      more += pick({"", R"("labels":{"a":"b"},)"}) +
              pick({"", R"("code_hash":"x",)", R"("code_hash":"",)"});
      more += pick({"", R"("replicas":0,)", R"("replicas":3,)", R"("min_replicas":1,)",
                    R"("max_replicas":9,)"});
      more += pick({"", R"("memory_mb":64,)"}) + pick({"", R"("timeouts":{"create":"9m"},)"});
      more += pick({R"("name":"f")", R"("name":"f")", R"("name":"f")", R"("name":"g")"});
      const auto config = Config(more, pick({"src", "two"}));
      const bool fails = random() % 4 == 0;
      if (fails) world.backend.build_failure = Broken();
      const auto applied = driver.Apply(config);
      EXPECT_TRUE(applied.violations.empty()) << more << "\n" << applied.Problems();
      world.backend.build_failure.reset();
      if (applied.diagnostics.HasError()) {
        EXPECT_TRUE(fails) << applied.Problems();
        if (random() % 2 == 0) {
          EXPECT_TRUE(driver.Refresh().Ok());
        }
        continue;
      }
      ExpectQuiet(driver, config);
      const auto stored = world.backend.Functions().Look(driver.state().Get("id").AsString());
      EXPECT_EQ(stored.spec.environment.size(), config.Get("environment").AsMap().size());
      EXPECT_EQ(stored.status.phase, "Ready");
    }
    EXPECT_TRUE(driver.Destroy().Ok());
  }
}

}  // namespace
}  // namespace sless::resources
