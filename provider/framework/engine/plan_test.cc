#include "provider/framework/engine/plan.h"

#include <gmock/gmock.h>

#include "client/base/json.h"
#include "provider/framework/defaults.h"
#include "provider/framework/plan_modifiers.h"
#include "provider/framework/semantic.h"
#include "provider/framework/testing/core_driver.h"
#include "provider/framework/testing/fake_resource.h"
#include "provider/framework/timeouts.h"

namespace sless::framework {
namespace {

using cty::Path;
using cty::Value;
using ::testing::ElementsAre;
using testing::FakeProvider;
using testing::FakeResource;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::PlannedAction;

Schema ThingSchema() {
  return Schema{
      .attributes =
          {{"id", String(), {.computed = true, .plan_modifiers = {UseStateForUnknown()}}},
           {"name", String(), {.required = true, .plan_modifiers = {RequiresReplace()}}},
           {"size", Int64(), {.optional = true, .computed = true, .default_value = Int(256)}},
           {"zone", String(), {.optional = true, .computed = true}},
           {"revision", Int64(), {.computed = true}},
           {"event", String(), {.optional = true, .semantic_equal = JsonEqual}},
           {"secret", String(), {.optional = true, .write_only = true}},
           {"http",
            SingleNested({{"path",
                           String(),
                           {.optional = true, .computed = true, .default_value = Str("/")}},
                          {"url", String(), {.computed = true}}}),
            {.optional = true}},
           {"rules",
            SetNested({{"port", Int64(), {.required = true}},
                       {"proto",
                        String(),
                        {.optional = true, .computed = true, .default_value = Str("tcp")}},
                       {"rule_id",
                        String(),
                        {.computed = true, .plan_modifiers = {UseStateForUnknown()}}}}),
            {.optional = true}},
           {"steps",
            ListNested({{"run", String(), {.required = true}},
                        {"step_id",
                         String(),
                         {.computed = true, .plan_modifiers = {UseStateForUnknown()}}}}),
            {.optional = true}}},
      .blocks = {TimeoutsBlock({{"create", "1m"}})}};
}

class PlanTest : public ::testing::Test {
 protected:
  void Use(FakeResource::Hooks hooks) {
    if (hooks.schema.attributes.empty()) hooks.schema = ThingSchema();
    engine_ = std::make_unique<engine::Engine>(
        std::make_unique<FakeProvider>(std::vector<FakeResource::Hooks>{std::move(hooks)}), clock_);
    driver_ = std::make_unique<testing::CoreDriver>(*engine_, "fake_thing", log_);
  }
  void SetUp() override { Use({}); }

  Value Config(Value::Members members) { return driver_->Config(std::move(members)); }
  Value Named(std::string_view name = "n") { return Config({{"name", Str(name)}}); }
  void MustApply(const Value& config) {
    const auto result = driver_->Apply(config);
    ASSERT_TRUE(result.Ok()) << result.Problems();
  }

  base::SystemClock clock_;
  base::NullLogger log_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<testing::CoreDriver> driver_;
};

TEST_F(PlanTest, CreateMakesComputedUnknownAndSetsDefaults) {
  const auto plan = driver_->Plan(Named());
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_EQ(plan.action, PlannedAction::kCreate);
  EXPECT_TRUE(plan.planned.Get("id").IsUnknown());
  EXPECT_TRUE(plan.planned.Get("zone").IsUnknown());
  EXPECT_TRUE(plan.planned.Get("revision").IsUnknown());
  EXPECT_EQ(plan.planned.Get("size"), Int(256));
  EXPECT_TRUE(plan.planned.Get("http").IsNull());
  EXPECT_TRUE(plan.planned.Get("timeouts").IsNull());
}

TEST_F(PlanTest, NothingChangedIsAnEmptyPlan) {
  MustApply(Named());
  const auto plan = driver_->Plan(Named());
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_EQ(plan.action, PlannedAction::kNoOp);
}

TEST_F(PlanTest, UpdateKeepsWhatIsStable) {
  MustApply(Named());
  const auto plan = driver_->Plan(Config({{"name", Str("n")}, {"size", Int(512)}}));
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_EQ(plan.action, PlannedAction::kUpdate);
  EXPECT_EQ(plan.planned.Get("id"), driver_->state().Get("id"));
  EXPECT_TRUE(plan.planned.Get("revision").IsUnknown());
  EXPECT_THAT(plan.requires_replace, IsEmpty());
}

TEST_F(PlanTest, RequiresReplace) {
  MustApply(Named("a"));
  const auto plan = driver_->Plan(Named("b"));
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_EQ(plan.action, PlannedAction::kReplace);
  EXPECT_THAT(plan.requires_replace, ElementsAre(Path("name")));
  EXPECT_TRUE(plan.planned.Get("id").IsUnknown());  // of the new object
  const auto unknown = driver_->Plan(Config({{"name", Value::Unknown()}}));
  EXPECT_EQ(unknown.action, PlannedAction::kReplace);
}

TEST_F(PlanTest, RemovedDefaultedValueGoesBackToTheDefault) {
  MustApply(Config({{"name", Str("n")}, {"size", Int(512)}}));
  const auto plan = driver_->Plan(Named());
  EXPECT_EQ(plan.action, PlannedAction::kUpdate);
  EXPECT_EQ(plan.planned.Get("size"), Int(256));
}

TEST_F(PlanTest, UnknownConfigurationIsNoDefault) {
  const auto plan = driver_->Plan(
      Config({{"name", Str("n")}, {"size", Value::Unknown()}, {"http", Value::Unknown()}}));
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_TRUE(plan.planned.Get("size").IsUnknown());
  EXPECT_TRUE(plan.planned.Get("http").IsUnknown());
}

TEST_F(PlanTest, WriteOnlyIsNullAndNoChange) {
  MustApply(Config({{"name", Str("n")}, {"secret", Str("s1")}}));
  EXPECT_TRUE(driver_->state().Get("secret").IsNull());
  const auto plan = driver_->Plan(Config({{"name", Str("n")}, {"secret", Str("s2")}}));
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_EQ(plan.action, PlannedAction::kNoOp);
}

TEST_F(PlanTest, EqualByMeaningIsNoChange) {
  MustApply(Config({{"name", Str("n")}, {"event", Str("{\"a\":1, \"b\":2}")}}));
  const auto spelled =
      driver_->Plan(Config({{"name", Str("n")}, {"event", Str("{\"b\":2,\"a\":1}")}}));
  ASSERT_TRUE(spelled.Ok()) << spelled.Problems();
  EXPECT_EQ(spelled.action, PlannedAction::kNoOp);
  const auto changed = driver_->Plan(Config({{"name", Str("n")}, {"event", Str("{\"a\":2}")}}));
  EXPECT_EQ(changed.action, PlannedAction::kUpdate);
  EXPECT_EQ(changed.planned.Get("event"), Str("{\"a\":2}"));
  const auto removed = driver_->Plan(Named());
  EXPECT_EQ(removed.action, PlannedAction::kUpdate);
  EXPECT_TRUE(removed.planned.Get("event").IsNull());
}

Value Http(Value path) {
  return Value::Object({{"path", std::move(path)}, {"url", Value::Null()}});
}

TEST_F(PlanTest, NestedDefaultsAndComputed) {
  const auto plan = driver_->Plan(Config({{"name", Str("n")}, {"http", Http(Value::Null())}}));
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_EQ(plan.planned.Get("http").Get("path"), Str("/"));
  EXPECT_TRUE(plan.planned.Get("http").Get("url").IsUnknown());
  MustApply(Config({{"name", Str("n")}, {"http", Http(Value::Null())}}));
  EXPECT_EQ(driver_->Plan(Config({{"name", Str("n")}, {"http", Http(Str("/"))}})).action,
            PlannedAction::kNoOp);
  EXPECT_EQ(driver_->Plan(Named()).action, PlannedAction::kUpdate);
}

Value Rule(int64_t port, Value proto = Value::Null()) {
  return Value::Object(
      {{"port", Int(port)}, {"proto", std::move(proto)}, {"rule_id", Value::Null()}});
}

Value RuleIdOf(const Value& object, int64_t port) {
  for (const auto& rule : object.Get("rules").AsList()) {
    if (rule.Get("port") == Int(port)) return rule.Get("rule_id");
  }
  return Value::Null();
}

TEST_F(PlanTest, SetElementsKeepTheirPartners) {
  const auto config = [&](std::vector<Value> rules) {
    return Config({{"name", Str("n")}, {"rules", Value::Set(std::move(rules))}});
  };
  MustApply(config({Rule(80), Rule(443)}));
  const Value before = driver_->state();
  EXPECT_EQ(driver_->Plan(config({Rule(443), Rule(80, Str("tcp"))})).action, PlannedAction::kNoOp);

  // A new element in front of both, and one that changes.
  const auto plan = driver_->Plan(config({Rule(22), Rule(80), Rule(443, Str("udp"))}));
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_EQ(plan.planned.Get("rules").size(), 3u);
  EXPECT_EQ(RuleIdOf(plan.planned, 80), RuleIdOf(before, 80));
  EXPECT_TRUE(RuleIdOf(plan.planned, 22).IsUnknown());
  EXPECT_TRUE(RuleIdOf(plan.planned, 443).IsUnknown());  // proto differs: another element
}

TEST_F(PlanTest, NewListElementsHaveNoPriorValue) {
  const auto step = [](const char* run) {
    return Value::Object({{"run", Str(run)}, {"step_id", Value::Null()}});
  };
  MustApply(Config({{"name", Str("n")}, {"steps", Value::List({step("a")})}}));
  const auto plan =
      driver_->Plan(Config({{"name", Str("n")}, {"steps", Value::List({step("a"), step("b")})}}));
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  const auto& steps = plan.planned.Get("steps").AsList();
  EXPECT_EQ(steps[0].Get("step_id"), driver_->state().Get("steps").AsList()[0].Get("step_id"));
  EXPECT_TRUE(steps[1].Get("step_id").IsUnknown());
}

TEST_F(PlanTest, TimeoutsAloneAreAnUpdate) {
  MustApply(Named());
  const auto plan = driver_->Plan(
      Config({{"name", Str("n")}, {"timeouts", Value::Object({{"create", Str("5m")}})}}));
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_EQ(plan.action, PlannedAction::kUpdate);
}

TEST_F(PlanTest, ModifyPlanHasTheLastWord) {
  Use({.modify_plan = [](const ModifyPlanRequest& request, ModifyPlanResponse& response) {
    if (request.config.IsNull()) {
      response.diagnostics.AddWarning("Destroying", "It goes.");
      return;
    }
    response.plan = response.plan.With("revision", Int(7)).With("secret", Str("leak"));
    response.requires_replace = {Path("size"), Path("nowhere"), Path("size")};
    response.private_data.Set("k", "v");
  }});
  MustApply(Named());
  EXPECT_EQ(driver_->state().Get("revision"), Int(7));
  EXPECT_TRUE(driver_->state().Get("secret").IsNull());
  EXPECT_EQ(PrivateData::Decode(driver_->private_data()).Get("k"), "v");
  const auto plan = driver_->Plan(Config({{"name", Str("n")}, {"size", Int(3)}}));
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_EQ(plan.action, PlannedAction::kReplace);
  EXPECT_THAT(plan.requires_replace, ElementsAre(Path("size")));
  const auto destroy = driver_->Destroy();
  EXPECT_THAT(destroy.Problems(), HasSubstr("warning: Destroying"));
  EXPECT_TRUE(driver_->state().IsNull());
}

TEST_F(PlanTest, BadModifyPlanIsReported) {
  const std::vector<
      std::pair<const char*, std::function<void(const ModifyPlanRequest&, ModifyPlanResponse&)>>>
      cases = {
          {"null against existence", [](auto&, auto& r) { r.plan = Value::Null(); }},
          {"does not fit", [](auto&, auto&) { throw std::runtime_error("it does not fit"); }},
          {"wanted number", [](auto&, auto& r) { r.plan = r.plan.With("size", Str("x")); }},
          {"no attribute", [](auto&, auto& r) { r.plan = r.plan.With("more", Str("x")); }},
      };
  for (const auto& [text, hook] : cases) {
    Use({.modify_plan = hook});
    EXPECT_THAT(driver_->Plan(Named()).diagnostics.ToString(), HasSubstr(text));
  }
}

TEST_F(PlanTest, PriorPrivateDataGoesThrough) {
  std::string at_delete;
  std::string at_update;
  Use({.create =
           [](const ChangeRequest& request, StateResponse& response) {
             response.state = testing::DecideUnknowns(ImpliedType(ThingSchema()), request.plan);
             response.private_data.Set("made", request.plan.Get("name").AsString());
           },
       .update =
           [&](const ChangeRequest& request, StateResponse& response) {
             at_update = response.private_data.Get("made").value_or("");
             response.state = testing::DecideUnknowns(ImpliedType(ThingSchema()), request.plan);
           },
       .remove =
           [&](const ChangeRequest&, StateResponse& response) {
             at_delete = response.private_data.Get("made").value_or("");
           }});
  MustApply(Named("a"));
  MustApply(Config({{"name", Str("a")}, {"size", Int(1)}}));
  EXPECT_EQ(at_update, "a");
  MustApply(Named("b"));  // replaces
  EXPECT_EQ(at_delete, "a");
  EXPECT_EQ(PrivateData::Decode(driver_->private_data()).Get("made"), "b");
}

TEST_F(PlanTest, ModifierConditions) {
  Schema schema;
  schema.attributes = {
      {"a",
       Int64(),
       {.optional = true,
        .plan_modifiers = {RequiresReplaceIf(
            [](const ModifyContext& c) {
              return c.planned.AsNumber().AsInt64().value_or(0) <
                     c.prior.AsNumber().AsInt64().value_or(0);
            },
            "where it shrinks")}}},
      {"b", String(), {.optional = true, .plan_modifiers = {RequiresReplaceIfConfigured()}}},
      {"c", String(), {.computed = true, .plan_modifiers = {UseNonNullStateForUnknown()}}},
      {"d", String(), {.computed = true, .plan_modifiers = {UseStateForUnknown()}}}};
  Use({.schema = schema, .create = [](const ChangeRequest& request, StateResponse& response) {
         response.state = request.plan.With("c", Value::Null()).With("d", Value::Null());
       }});
  MustApply(Config({{"a", Int(5)}, {"b", Str("x")}}));
  const auto action = [&](Value a, Value b) {
    return driver_->Plan(Config({{"a", a}, {"b", b}})).action;
  };
  EXPECT_EQ(action(Int(6), Str("x")), PlannedAction::kUpdate);
  EXPECT_EQ(action(Int(4), Str("x")), PlannedAction::kReplace);
  EXPECT_EQ(action(Int(5), Str("y")), PlannedAction::kReplace);
  EXPECT_EQ(action(Int(5), Value::Null()), PlannedAction::kUpdate);
  const auto plan = driver_->Plan(Config({{"a", Int(6)}, {"b", Str("x")}}));
  EXPECT_TRUE(plan.planned.Get("c").IsUnknown());
  EXPECT_TRUE(plan.planned.Get("d").IsNull());
}

TEST_F(PlanTest, ContainerModifierThenChildren) {
  // A computed nested object whose container keeps its state: the children must not become unknown.
  Schema schema;
  schema.attributes = {{"a", Int64(), {.optional = true}},
                       {"info",
                        SingleNested({{"x", String(), {.computed = true}}}),
                        {.computed = true, .plan_modifiers = {UseStateForUnknown()}}}};
  Use({.schema = schema});
  MustApply(Config({{"a", Int(1)}}));
  const auto plan = driver_->Plan(Config({{"a", Int(2)}}));
  ASSERT_TRUE(plan.Ok()) << plan.Problems();
  EXPECT_EQ(plan.planned.Get("info"), driver_->state().Get("info"));
  EXPECT_TRUE(plan.planned.IsWhollyKnown());
}

TEST_F(PlanTest, UnknownContainerReplacesWhereAPartWould) {
  Schema schema;
  schema.attributes = {
      {"a",
       SingleNested({{"x", String(), {.optional = true, .plan_modifiers = {RequiresReplace()}}}}),
       {.optional = true}},
      {"b", SingleNested({{"x", String(), {.optional = true}}}), {.optional = true}}};
  Use({.schema = schema});
  const auto x = [](const char* text) { return Value::Object({{"x", Str(text)}}); };
  MustApply(Config({{"a", x("1")}, {"b", x("1")}}));
  const auto plan = driver_->Plan(Config({{"a", Value::Unknown()}, {"b", x("1")}}));
  EXPECT_EQ(plan.action, PlannedAction::kReplace);
  EXPECT_THAT(plan.requires_replace, ElementsAre(Path("a")));
  EXPECT_EQ(driver_->Plan(Config({{"a", x("1")}, {"b", Value::Unknown()}})).action,
            PlannedAction::kUpdate);
  const auto applied = driver_->Apply(Config({{"a", Value::Unknown()}, {"b", x("1")}}),
                                      Config({{"a", x("2")}, {"b", x("1")}}));
  EXPECT_TRUE(applied.Ok()) << applied.Problems();
}

TEST_F(PlanTest, IdentityMustNotChangeInAnUpdate) {
  IdentitySchema identity{.version = 0, .attributes = {{"key", cty::Type::String(), true, ""}}};
  const auto key = [](const char* text) { return Value::Object({{"key", Str(text)}}); };
  Use({.identity = identity,
       .create =
           [&](const ChangeRequest& request, StateResponse& response) {
             response.state = testing::DecideUnknowns(ImpliedType(ThingSchema()), request.plan);
             response.identity = key("a");
           },
       .modify_plan =
           [&](const ModifyPlanRequest& request, ModifyPlanResponse& response) {
             if (!request.prior.IsNull() && !request.config.IsNull()) response.identity = key("b");
           }});
  MustApply(Named());
  EXPECT_EQ(driver_->identity(), key("a"));
  EXPECT_THAT(driver_->Plan(Config({{"name", Str("n")}, {"size", Int(9)}})).diagnostics.ToString(),
              HasSubstr("Unexpected Identity Change"));
}

}  // namespace
}  // namespace sless::framework
