#include "provider/framework/engine/apply.h"

#include <gmock/gmock.h>

#include "provider/framework/defaults.h"
#include "provider/framework/engine/read.h"
#include "provider/framework/model.h"
#include "provider/framework/semantic.h"
#include "provider/framework/testing/core_driver.h"
#include "provider/framework/testing/fake_resource.h"

namespace sless::framework {
namespace {

using cty::Value;
using testing::FakeProvider;
using testing::FakeResource;
using ::testing::HasSubstr;
using ::testing::Not;

Schema ThingSchema() {
  return Schema{.attributes = {{"id", String(), {.computed = true}},
                               {"name", String(), {.required = true}},
                               {"event", String(), {.optional = true, .semantic_equal = JsonEqual}},
                               {"secret", String(), {.optional = true, .write_only = true}}},
                .blocks = {Block{.name = "rule",
                                 .nesting = Nesting::kList,
                                 .attributes = {{"port", Int64(), {.required = true}}}}}};
}

Value Thing(Value id, std::string_view name = "n") {
  return Value::Object({{"id", std::move(id)},
                        {"name", Str(name)},
                        {"event", Value::Null()},
                        {"secret", Value::Null()},
                        {"rule", Value::List({})}});
}

class ApplyTest : public ::testing::Test {
 protected:
  void Use(FakeResource::Hooks hooks) {
    hooks.schema = ThingSchema();
    engine_ = std::make_unique<engine::Engine>(
        std::make_unique<FakeProvider>(std::vector<FakeResource::Hooks>{std::move(hooks)}), clock_);
    entry_ = engine_->catalog().FindResource("fake_thing");
  }
  engine::ApplyResponse Create() {
    return engine::ApplyResource(
        *engine_, {{}, log_}, *entry_,
        {Thing(Value::Null()), Value::Null(), Thing(Value::Unknown()), "", Value::Null()});
  }
  engine::ApplyResponse Update() {
    return engine::ApplyResource(*engine_, {{}, log_}, *entry_,
                                 {Thing(Value::Null(), "m"), Thing(Str("1")),
                                  Thing(Value::Unknown(), "m"), "raw", Value::Null()});
  }
  engine::ApplyResponse Delete() {
    return engine::ApplyResource(
        *engine_, {{}, log_}, *entry_,
        {Value::Null(), Thing(Str("1")), Value::Null(), "", Value::Null()});
  }

  base::SystemClock clock_;
  base::NullLogger log_;
  std::unique_ptr<engine::Engine> engine_;
  const engine::ResourceEntry* entry_ = nullptr;
};

using Hook = std::function<void(const ChangeRequest&, StateResponse&)>;
struct Case {
  const char* name;
  Hook hook;
  Value create, update, remove;  // the state afterwards
  const char* error;             // of create and update; nullptr: none
};

TEST_F(ApplyTest, WhatIsKeptAfterEachOutcome) {
  const Value done = Thing(Str("1"));
  const std::vector<Case> cases = {
      {"AllWell",
       [](auto& q, auto& r) { r.state = q.plan.IsNull() ? q.prior : q.plan.With("id", Str("2")); },
       Thing(Str("2")), Thing(Str("2"), "m"), Value::Null(), nullptr},
      {"ErrorAtOnce", [](auto&, auto& r) { r.diagnostics.AddError("No", "No."); }, Value::Null(),
       done, done, "error: No"},
      {"ErrorAfterHalf",
       [](auto& q, auto& r) {
         if (!q.plan.IsNull()) r.state = q.plan;
         r.diagnostics.AddError("Half", "Half.");
       },
       Thing(Value::Null()), Thing(Value::Null(), "m"), done, "error: Half"},
      {"Throws", [](auto&, auto&) { throw std::runtime_error("boom"); }, Value::Null(), done, done,
       "exception: boom"},
      {"ThrowsOther", [](auto&, auto&) { throw 5; }, Value::Null(), done, done, "of unknown type"},
      {"ThrowsAfterState",
       [](auto& q, auto& r) {
         if (!q.plan.IsNull()) r.state = q.plan.With("id", Str("3"));
         (void)Attr<std::string>().Get();
       },
       Thing(Str("3")), Thing(Str("3"), "m"), done, "null attribute was read"},
      {"LeavesUnknown",
       [](auto& q, auto& r) {
         if (!q.plan.IsNull()) r.state = q.plan;
       },
       Thing(Value::Null()), Thing(Value::Null(), "m"), Value::Null(),
       "id: Provider Returned Unknown Value"},
      {"NoState", [](auto&, auto& r) { r.state = Value::Null(); }, Value::Null(), Value::Null(),
       Value::Null(), "Missing Resource State After"},
      {"WrongType", [](auto&, auto& r) { r.state = Str("x"); }, Thing(Value::Null()), done,
       Value::Null(), "Provider Returned Invalid State"},
      {"MissingAttribute",
       [](auto&, auto& r) {
         r.state = Value::Object({{"id", Str("1")}});
       },
       Thing(Value::Null()), done, Value::Null(), "missing"},
      {"UnknownState", [](auto&, auto& r) { r.state = Value::Unknown(); }, Thing(Value::Null()),
       done, Value::Null(), "Provider Returned Invalid State"},
      {"WriteOnlyAndNullBlocks",
       [](auto& q, auto& r) {
         if (q.plan.IsNull()) return;
         r.state =
             q.plan.With("id", Str("2")).With("secret", Str("leak")).With("rule", Value::Null());
       },
       Thing(Str("2")), Thing(Str("2"), "m"), Value::Null(), nullptr},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Use({.create = c.hook, .update = c.hook, .remove = c.hook});
    const auto created = Create();
    const auto updated = Update();
    const auto removed = Delete();
    EXPECT_EQ(created.state, c.create) << created.state.ToString();
    EXPECT_EQ(updated.state, c.update) << updated.state.ToString();
    EXPECT_EQ(removed.state, c.remove) << removed.state.ToString();
    for (const auto* response : {&created, &updated}) {
      if (c.error == nullptr) {
        EXPECT_EQ(response->diagnostics.ToString(), "");
      } else {
        EXPECT_THAT(response->diagnostics.ToString(), HasSubstr(c.error));
      }
    }
    EXPECT_EQ(updated.private_data, "raw");
  }
}

TEST_F(ApplyTest, KeepsThePlannedSpelling) {
  Use({.create = [](auto& q, auto& r) {
    r.state = q.plan.With("id", Str("1")).With("event", Str("{\"b\":1,\"a\":2}"));
  }});
  const Value planned = Thing(Value::Unknown()).With("event", Str("{ \"a\": 2, \"b\": 1.0 }"));
  const auto response = engine::ApplyResource(*engine_, {{}, log_}, *entry_,
                                              {planned, Value::Null(), planned, "", Value::Null()});
  EXPECT_EQ(response.diagnostics.ToString(), "");
  EXPECT_EQ(response.state.Get("event"), Str("{ \"a\": 2, \"b\": 1.0 }"));
}

TEST_F(ApplyTest, IdentityMustBeThereAfterwards) {
  IdentitySchema identity{.version = 0, .attributes = {{"key", cty::Type::String(), true, ""}}};
  const Hook make = [](auto& q, auto& r) { r.state = q.plan.With("id", Str("1")); };
  Use({.identity = identity, .create = make});
  auto response = Create();
  EXPECT_THAT(response.diagnostics.ToString(), HasSubstr("Missing Resource Identity After Create"));
  EXPECT_EQ(response.state, Thing(Str("1")));
  Use({.identity = identity, .create = [&](auto& q, auto& r) {
         make(q, r);
         r.identity = Value::Object({{"key", Value::Unknown()}});
       }});
  response = Create();
  EXPECT_THAT(response.diagnostics.ToString(), HasSubstr("Invalid Identity"));
  EXPECT_TRUE(response.identity.IsNull());
}

TEST_F(ApplyTest, FailedCreateIsTaintedAndReplaced) {
  bool fail = true;
  Use({.create = [&](auto& q, auto& r) {
    r.state = q.plan.With("id", fail ? Value::Unknown() : Str("2"));
    if (fail) r.diagnostics.AddError("Build failed", "line 3");
  }});
  testing::CoreDriver driver(*engine_, "fake_thing", log_);
  const Value config = driver.Config({{"name", Str("n")}});
  auto result = driver.Apply(config);
  EXPECT_TRUE(result.violations.empty()) << result.Problems();
  EXPECT_TRUE(driver.tainted());
  EXPECT_EQ(driver.state(), Thing(Value::Null()));
  fail = false;
  result = driver.Apply(config);
  EXPECT_TRUE(result.Ok()) << result.Problems();
  EXPECT_EQ(result.action, testing::PlannedAction::kReplace);
  EXPECT_FALSE(driver.tainted());
  EXPECT_EQ(driver.state(), Thing(Str("2")));
}

TEST_F(ApplyTest, DriverSeesABadProvider) {
  // The driver must be able to fail: a provider that changes a configured value.
  Use({.create = [](auto& q, auto& r) {
    r.state = q.plan.With("id", Str("1")).With("name", Str("other"));
  }});
  testing::CoreDriver driver(*engine_, "fake_thing", log_);
  const auto result = driver.Apply(driver.Config({{"name", Str("n")}}));
  EXPECT_THAT(result.Problems(), HasSubstr("name: was \"n\", but now \"other\""));
  Use({.modify_plan = [](auto&, auto& r) { r.plan = r.plan.With("name", Str("other")); }});
  testing::CoreDriver second(*engine_, "fake_thing", log_);
  EXPECT_THAT(second.Plan(second.Config({{"name", Str("n")}})).Problems(),
              HasSubstr("does not match config"));
  int count = 0;
  Use({.modify_plan = [&](auto&, auto& r) {
    r.plan = r.plan.With("id", Str(std::to_string(++count)));
  }});
  testing::CoreDriver third(*engine_, "fake_thing", log_);
  EXPECT_THAT(third.Plan(third.Config({{"name", Str("n")}})).Problems(),
              HasSubstr("second plan of the same request differs"));
}

// --- read ---

struct ReadCase {
  const char* name;
  std::function<void(const ReadRequest&, StateResponse&)> hook;
  Value state;
  const char* error;
};

TEST_F(ApplyTest, Read) {
  const Value before = Thing(Str("1")).With("event", Str("{\"a\":1}"));
  const std::vector<ReadCase> cases = {
      {"Same", [](auto&, auto&) {}, before, nullptr},
      {"Gone", [](auto&, auto& r) { r.state = Value::Null(); }, Value::Null(), nullptr},
      {"Drift", [](auto& q, auto& r) { r.state = q.state.With("name", Str("x")); },
       before.With("name", Str("x")), nullptr},
      {"SameMeaning",
       [](auto& q, auto& r) { r.state = q.state.With("event", Str("{ \"a\" : 1 }")); }, before,
       nullptr},
      {"Error", [](auto&, auto& r) { r.diagnostics.AddError("Denied", "x"); }, before, "Denied"},
      {"Throws", [](auto&, auto&) { throw std::logic_error("oops"); }, before, "oops"},
      {"WrongType", [](auto&, auto& r) { r.state = Value::Int(1); }, before, "Invalid State"},
      {"Unknown", [](auto& q, auto& r) { r.state = q.state.With("id", Value::Unknown()); },
       before.With("id", Value::Null()), "unknown"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Use({.read = c.hook});
    const auto response =
        engine::ReadResource(*engine_, {{}, log_}, *entry_, {before, "private", Value::Null()});
    EXPECT_EQ(response.state, c.state) << response.state.ToString();
    EXPECT_EQ(response.private_data, "private");
    if (c.error == nullptr) {
      EXPECT_EQ(response.diagnostics.ToString(), "");
    } else {
      EXPECT_THAT(response.diagnostics.ToString(), HasSubstr(c.error));
    }
  }
}

}  // namespace
}  // namespace sless::framework
