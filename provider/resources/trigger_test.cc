#include <gtest/gtest.h>

#include "provider/resources/testing/world.h"

namespace sless::resources {
namespace {

using base::Code;
using cty::Value;
using framework::testing::PlannedAction;
using Names = std::set<std::string>;

constexpr const char* kType = "sless_trigger";
constexpr const char* kId = "default/t";

class TriggerTest : public testing::Test {
 protected:
  Value Config(const std::string& more) const {
    return world.Config(kType, R"({"name":"t","function":"f",)" + more + "}");
  }
  Value Http(const std::string& http = "", const std::string& more = "") const {
    return Config(R"("type":"http","http":{)" + http + "}" + more);
  }
  Value Cron(const std::string& cron) const {
    return Config(R"("type":"cron","cron":{)" + cron + "}");
  }
  void Settle(framework::testing::CoreDriver& driver, const Value& config) {
    const auto applied = driver.Apply(config);
    ASSERT_TRUE(applied.Ok()) << applied.Problems();
    for (int i = 0; i < 2; ++i) {
      const auto plan = driver.Plan(config);
      EXPECT_EQ(plan.action, PlannedAction::kNoOp)
          << plan.planned.ToString() << "\nnot " << driver.state().ToString() << plan.Problems();
      const auto refreshed = driver.Refresh();
      ASSERT_TRUE(refreshed.Ok()) << refreshed.Problems();
    }
  }
  World world;
};

TEST_F(TriggerTest, TheUrlIsKnownInThePlan) {
  const struct {
    const char* http;
    const char* url;
  } rows[] = {
      {"", "http://sless.test/fn/default/f"},
      {R"("path":"/")", "http://sless.test/fn/default/f"},
      {R"("path":"/v1")", "http://sless.test/fn/default/f/v1"},
      {R"("path":"/v1/a","methods":["POST","GET"],"auth":"token")",
       "http://sless.test/fn/default/f/v1/a"},
  };
  auto driver = world.Driver(kType);
  for (const auto& row : rows) {
    SCOPED_TRACE(row.http);
    EXPECT_EQ(driver.Plan(Http(row.http)).planned.Get("url"), Value::String(row.url));
    Settle(driver, Http(row.http));
    EXPECT_EQ(driver.state().Get("url"), Value::String(row.url));
  }
  EXPECT_EQ(world.backend.Triggers().Look(kId).spec.http->methods,
            (std::vector<std::string>{"GET", "POST"}));
  EXPECT_FALSE(world.backend.Triggers().Look(kId).metadata.annotations.contains(
      std::string(api::kCreatingAnnotation)));
}

TEST_F(TriggerTest, ASlashAtTheEndOfTheServersUrlDoesNotCount) {
  world.backend.external_url = "https://sless.test/";
  EXPECT_EQ(world.Driver(kType).Plan(Http()).planned.Get("url"),
            Value::String("https://sless.test/fn/default/f"));
}

TEST_F(TriggerTest, TheUrlIsUnknownWhereTheFunctionIs) {
  auto driver = world.Driver(kType);
  const auto at_plan =
      world.Config(kType, R"({"name":"t","function":"<unknown>","type":"http","http":{}})");
  EXPECT_TRUE(driver.Plan(at_plan).planned.Get("url").IsUnknown());
  const auto applied = driver.Apply(at_plan, Http());
  EXPECT_TRUE(applied.Ok()) << applied.Problems();
}

TEST_F(TriggerTest, EachAttributeAlone) {
  auto driver = world.Driver(kType);
  Settle(driver, Http());
  const struct {
    Value config;
    Names changed;
  } rows[] = {
      {Http(R"("auth":"token")"), {"http"}},
      {Http(R"("auth":"token","methods":["GET"])"), {"http"}},
      {Http(R"("auth":"token","methods":["GET"],"path":"/p")"), {"http", "url"}},
      {Http(R"("auth":"token","methods":["GET"],"path":"/p")", R"(,"enabled":false)"), {"enabled"}},
      {world.Config(
           kType,
           R"({"name":"t","function":"g","enabled":false,"type":"http","http":{"auth":"token","methods":["GET"],"path":"/p"}})"),
       {"function", "url"}},
  };
  for (const auto& row : rows) {
    const auto plan = driver.Plan(row.config);
    EXPECT_EQ(plan.action, PlannedAction::kUpdate);
    EXPECT_EQ(Changed(driver.state(), plan.planned), row.changed);
    Settle(driver, row.config);
  }
  EXPECT_EQ(driver.Plan(Cron(R"("schedule":"@daily")")).action, PlannedAction::kReplace);
  Settle(driver, Cron(R"("schedule":"@daily")"));
  EXPECT_TRUE(driver.state().Get("url").IsNull());
}

TEST_F(TriggerTest, CronDefaultsAndMeaningOfThePayload) {
  auto driver = world.Driver(kType);
  Settle(driver,
         Cron(R"("schedule":"30 2 * * MON","timezone":"Europe/Berlin","payload":"{\"a\":1}")"));
  EXPECT_EQ(driver.state().Get("cron").Get("overlap"), Value::String("skip"));
  EXPECT_EQ(driver.state().Get("cron").Get("misfire"), Value::String("skip"));
  EXPECT_EQ(
      driver
          .Plan(Cron(
              R"("schedule":"30 2 * * MON","timezone":"Europe/Berlin","payload":"{ \"a\": 1.0 }")"))
          .action,
      PlannedAction::kNoOp);
  EXPECT_EQ(Changed(driver.state(), driver.Plan(Cron(R"("schedule":"@hourly")")).planned),
            (Names{"cron"}));
  Settle(driver, Cron(R"("schedule":"@hourly")"));
}

TEST_F(TriggerTest, AFailedTriggerSaysWhatToDo) {
  world.backend.trigger_failure =
      api::Failure{"FunctionMissing", "function default/f does not exist", "", 0, {}};
  auto driver = world.Driver(kType);
  const auto failed = driver.Apply(Http());
  EXPECT_TRUE(HasError(failed.diagnostics, "function", "does not exist")) << failed.Problems();
  EXPECT_TRUE(HasError(failed.diagnostics, "function", "sless_function.<label>.name"))
      << failed.Problems();
  EXPECT_TRUE(failed.violations.empty()) << failed.Problems();
  EXPECT_TRUE(driver.tainted());
  const auto read = driver.Refresh();
  EXPECT_TRUE(read.Ok() && !read.diagnostics.empty()) << "a warning: " << read.Problems();
  world.backend.trigger_failure.reset();
  Settle(driver, Http());
}

TEST_F(TriggerTest, AnUpdateThatFailedIsNotForgotten) {
  auto driver = world.Driver(kType);
  Settle(driver, Http());
  world.backend.trigger_failure =
      api::Failure{"FunctionMissing", "function default/g does not exist", "", 0, {}};
  const auto config = world.Config(kType, R"({"name":"t","function":"g","type":"http","http":{}})");
  EXPECT_FALSE(driver.Apply(config).Ok());
  for (const bool refresh : {false, true}) {
    if (refresh) {
      ASSERT_TRUE(driver.Refresh().Ok());
    }
    EXPECT_EQ(driver.Plan(config).action, PlannedAction::kUpdate);
    EXPECT_TRUE(HasError(driver.Apply(config).diagnostics, "function", "does not exist"));
  }
  world.backend.trigger_failure.reset();
  Settle(driver, config);
}

TEST_F(TriggerTest, ChangedOrDeletedMeanwhileIsNotGreen) {
  for (const bool update : {false, true}) {
    SCOPED_TRACE(update);
    World fresh;
    auto driver = fresh.Driver(kType);
    const auto config = [&](const char* path) {
      return fresh.Config(kType, R"({"name":"t","function":"f","type":"http","http":{"path":")" +
                                     std::string(path) + "\"}}");
    };
    if (update) {
      ASSERT_TRUE(driver.Apply(config("/before")).Ok());
    }
    fresh.backend.meanwhile = [&](const std::string& call) {
      if (call == "trigger.wait")
        fresh.backend.Triggers().Edit(kId, [](auto& trigger) { trigger.spec.http->path = "/x"; });
    };
    const auto changed = driver.Apply(config("/mine"));
    EXPECT_TRUE(changed.violations.empty()) << changed.Problems();
    EXPECT_TRUE(HasError(changed.diagnostics, "name",
                         "The trigger default/t changed while this apply waited for it"))
        << changed.Problems();
    EXPECT_EQ(driver.state().Get("http").Get("path"), Value::String("/x"));
    fresh.backend.meanwhile = {};
    EXPECT_TRUE(driver.Apply(config("/mine")).Ok());
    EXPECT_EQ(fresh.backend.Triggers().Look(kId).spec.http->path, "/mine");

    fresh.backend.meanwhile = [&](const std::string& call) {
      if (call == "trigger.wait") fresh.backend.Triggers().Erase(kId);
    };
    if (!update) {
      ASSERT_TRUE(driver.Destroy().Ok());
    }
    const auto gone = driver.Apply(config("/other"));
    EXPECT_TRUE(HasError(gone.diagnostics, "name",
                         "The trigger default/t is gone: somebody deleted it while this apply"))
        << gone.Problems();
    EXPECT_EQ(driver.state().IsNull(), !update);
  }
}

TEST_F(TriggerTest, ImportDriftAndDestroy) {
  const auto config = Http(R"("auth":"token","methods":["GET"],"path":"/p")");
  auto creator = world.Driver(kType);
  Settle(creator, config);
  auto importer = world.Driver(kType);
  ASSERT_TRUE(importer.Import(kId).Ok());
  EXPECT_EQ(importer.state(), creator.state());
  EXPECT_EQ(importer.Plan(config).action, PlannedAction::kNoOp);
  world.backend.Triggers().Edit(kId, [](auto& trigger) { trigger.spec.enabled = false; });
  ASSERT_TRUE(importer.Refresh().Ok());
  EXPECT_EQ(Changed(importer.state(), importer.Plan(config).planned), (Names{"enabled"}));
  Settle(importer, config);
  EXPECT_TRUE(importer.Destroy().Ok());
  EXPECT_TRUE(creator.Destroy().Ok()) << "gone already is success";
}

TEST_F(TriggerTest, ServerErrorsPointIntoNestedAttributes) {
  auto driver = world.Driver(kType);
  world.backend.FailNext(
      "trigger.create",
      {Code::kInvalidArgument, "taken by another trigger", "/spec/http/path", "", {}});
  EXPECT_TRUE(HasError(driver.Apply(Http()).diagnostics, "http.path", "taken"));
  world.backend.FailNext("trigger.create",
                         {Code::kInvalidArgument, "no such zone", "/spec/cron/timezone", "", {}});
  EXPECT_TRUE(HasError(driver.Apply(Cron(R"("schedule":"@daily")")).diagnostics, "cron.timezone",
                       "no such zone"));
}

TEST_F(TriggerTest, LostAnswersNeedNoHandWork) {
  for (const char* call : {"trigger.create", "trigger.wait", "trigger.finish"}) {
    for (const bool after : {false, true}) {
      World fresh;
      auto driver = fresh.Driver(kType);
      const auto config =
          fresh.Config(kType, R"({"name":"t","function":"f","type":"http","http":{}})");
      fresh.backend.FailNext(call, {Code::kUnavailable, "connection lost", "", "", {}}, after);
      driver.Apply(config);
      const auto again = driver.Apply(config);
      EXPECT_TRUE(again.Ok()) << call << again.Problems();
      EXPECT_EQ(driver.Plan(config).action, PlannedAction::kNoOp);
      EXPECT_TRUE(fresh.backend.Triggers().Has(kId));
    }
  }
}

TEST(TriggerUnconnected, KeepsTheUrlOfWhatIsThere) {
  World connected;
  auto creator = connected.Driver(kType);
  const auto config =
      connected.Config(kType, R"({"name":"t","function":"f","type":"http","http":{}})");
  ASSERT_TRUE(creator.Apply(config).Ok());
  World world(false);
  auto driver = world.Driver(kType);
  EXPECT_TRUE(driver.Plan(config).planned.Get("url").IsUnknown());
  driver.SetState(creator.state());
  EXPECT_EQ(driver.Plan(config).action, PlannedAction::kNoOp);
  EXPECT_TRUE(driver.Refresh().Ok());
  EXPECT_EQ(driver.state(), creator.state());
}

}  // namespace
}  // namespace sless::resources
