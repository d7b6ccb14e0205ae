#include "provider/framework/engine/state.h"

#include <gmock/gmock.h>

#include "provider/framework/defaults.h"
#include "provider/framework/testing/core_driver.h"
#include "provider/framework/testing/fake_resource.h"
#include "provider/framework/timeouts.h"

namespace sless::framework {
namespace {

using cty::Value;
using testing::FakeProvider;
using testing::FakeResource;
using ::testing::HasSubstr;

Schema ThingSchema() {
  return Schema{.version = 2,
                .attributes = {{"id", String(), {.computed = true}},
                               {"name", String(), {.required = true}},
                               {"size", Number(), {.optional = true}},
                               {"token", String(), {.optional = true, .sensitive = true}},
                               {"secret", String(), {.optional = true, .write_only = true}}},
                .blocks = {TimeoutsBlock({{"create", ""}}),
                           Block{.name = "rule",
                                 .nesting = Nesting::kList,
                                 .attributes = {{"port", Int64(), {.required = true}}}}}};
}

class StateTest : public ::testing::Test {
 protected:
  void Use(FakeResource::Hooks hooks) {
    hooks.schema = ThingSchema();
    engine_ = std::make_unique<engine::Engine>(std::make_unique<FakeProvider>(std::vector{hooks}),
                                               clock_);
    entry_ = engine_->catalog().FindResource("fake_thing");
  }
  engine::UpgradeResponse Upgrade(int64_t version, std::string_view json) {
    return engine::UpgradeState(*engine_, {{}, log_}, *entry_, {version, json});
  }
  engine::ImportedResource Import(std::string id, Value identity = Value::Null()) {
    return engine::ImportResource(*engine_, {{}, log_}, *entry_,
                                  {std::move(id), std::move(identity)});
  }

  base::SystemClock clock_;
  base::NullLogger log_;
  std::unique_ptr<engine::Engine> engine_;
  const engine::ResourceEntry* entry_ = nullptr;
};

TEST_F(StateTest, SameVersionIsReadLeniently) {
  Use({});
  const auto state =
      Upgrade(2, R"({ "id": "1", "name": "n", "size": 0.1, "gone": [{"x":1}], "secret": "s" })");
  EXPECT_EQ(state.diagnostics.ToString(), "");
  EXPECT_EQ(state.state.Get("size").AsNumber().ToString(), "0.1");
  EXPECT_TRUE(state.state.Get("secret").IsNull());
  EXPECT_TRUE(state.state.Get("timeouts").IsNull());
  EXPECT_EQ(state.state.Get("rule"), Value::List({}));
}

TEST_F(StateTest, UpgradesFromOldVersions) {
  Use({.upgraders = {
           {0, std::nullopt,
            [](const Context&, const Value& old, StateResponse& r) {
              r.state = Value::Object({{"id", old.Get("id")},
                                       {"name", old.Get("title")},
                                       {"size", Value::Null()},
                                       {"token", Value::Null()},
                                       {"secret", Value::Null()},
                                       {"timeouts", Value::Null()},
                                       {"rule", Value::Null()}});
            }},
           {1, cty::Type::Object({{"id", cty::Type::String()}, {"n", cty::Type::String()}}),
            [](const Context&, const Value& old, StateResponse& r) {
              if (old.Get("n").IsNull()) throw std::runtime_error("no n");
              r.state = old;
            }}}});
  const auto good = Upgrade(0, R"({"id":"1","title":"t","extra":{}})");
  EXPECT_EQ(good.diagnostics.ToString(), "");
  EXPECT_EQ(good.state.Get("name"), Str("t"));
  EXPECT_EQ(good.state.Get("rule"), Value::List({}));
  EXPECT_THAT(Upgrade(1, R"({"id":"1","n":"t"})").diagnostics.ToString(),
              HasSubstr("Invalid State"));
  EXPECT_THAT(Upgrade(1, R"({"id":"1"})").diagnostics.ToString(), HasSubstr("no n"));
  EXPECT_THAT(Upgrade(1, R"({"id":[]})").diagnostics.ToString(), HasSubstr("id: wanted string"));
  EXPECT_THAT(Upgrade(7, "{}").diagnostics.ToString(),
              HasSubstr("no upgrade of fake_thing from version 7 to 2"));
  EXPECT_THAT(Upgrade(2, "").diagnostics.ToString(), HasSubstr("0.11"));
  EXPECT_THAT(Upgrade(2, "{").diagnostics.ToString(), HasSubstr("not JSON"));
  EXPECT_THAT(Upgrade(2, "null").diagnostics.ToString(), HasSubstr("returned no state"));
}

TEST_F(StateTest, Imports) {
  Use({.read =
           [](const ReadRequest& q, StateResponse& r) {
             r.state = q.state.With("name", Str("n")).With("size", Int(1));
           },
       .import =
           [](const ImportRequest& q, StateResponse& r) {
             if (q.id != "a/b") {
               r.diagnostics.AddError("Unexpected Import Identifier", "Expected namespace/name.");
               return;
             }
             r.state = r.state.With("id", Str(q.id));
           }});
  const auto good = Import("a/b");
  EXPECT_EQ(good.diagnostics.ToString(), "");
  EXPECT_EQ(good.state.Get("id"), Str("a/b"));
  EXPECT_TRUE(good.state.Get("timeouts").IsNull());
  EXPECT_THAT(Import("x").diagnostics.ToString(), HasSubstr("Expected namespace/name."));
  EXPECT_TRUE(Import("x").state.IsNull());
  EXPECT_THAT(Import("").diagnostics.ToString(), HasSubstr("id: Missing Import Identifier"));

  testing::CoreDriver driver(*engine_, "fake_thing", log_);
  const auto result = driver.Import("a/b");
  EXPECT_TRUE(result.Ok()) << result.Problems();
  const auto plan = driver.Plan(driver.Config({{"name", Str("n")}, {"size", Int(1)}}));
  EXPECT_EQ(plan.action, testing::PlannedAction::kNoOp) << plan.Problems();
}

TEST_F(StateTest, BadImports) {
  Use({});
  EXPECT_THAT(Import("x").diagnostics.ToString(), HasSubstr("Resource Import Not Implemented"));
  Use({.import = [](auto&, auto&) {}});
  EXPECT_THAT(Import("x").diagnostics.ToString(), HasSubstr("Missing Resource Import State"));
  Use({.import = [](auto&, auto& r) {
    r.state = r.state.With("id", Value::Unknown()).With("name", Str("x"));
  }});
  EXPECT_THAT(Import("x").diagnostics.ToString(), HasSubstr("unknown"));
  Use({.import = [](auto&, auto& r) { r.state = Value::Null(); }});
  EXPECT_THAT(Import("x").diagnostics.ToString(), HasSubstr("Missing Resource"));
  Use({.read = [](auto&, auto& r) { r.state = Value::Null(); },
       .import = [](auto& q, auto& r) { r.state = r.state.With("id", Str(q.id)); }});
  testing::CoreDriver driver(*engine_, "fake_thing", log_);
  EXPECT_THAT(driver.Import("x").Problems(), HasSubstr("non-existent"));
}

TEST_F(StateTest, Moves) {
  Use({.move = [](const MoveRequest& q, StateResponse& r) {
    r.state = r.state.With("id", q.source_state.Get("key")).With("name", Str("m"));
  }});
  const auto move = [&](const char* type, const char* json) {
    return engine::MoveResource(*engine_, {{}, log_}, *entry_,
                                {"host/ns/other", type, 0, json, "raw"});
  };
  const auto good = move("other_thing", R"({"key":"k"})");
  EXPECT_EQ(good.diagnostics.ToString(), "");
  EXPECT_EQ(good.state.Get("id"), Str("k"));
  EXPECT_EQ(good.private_data, "raw");
  EXPECT_THAT(move("other_thing", "[").diagnostics.ToString(), HasSubstr("cannot be read"));
  Use({});
  EXPECT_THAT(move("x_y", "{}").diagnostics.ToString(),
              HasSubstr("cannot take over the state of x_y"));
}

TEST_F(StateTest, UpgradesIdentity) {
  Use({.identity =
           IdentitySchema{.version = 1, .attributes = {{"key", cty::Type::String(), true, ""}}}});
  EXPECT_EQ(engine::UpgradeIdentity(*entry_, {0, R"({"key":"a","old":1})"}).state,
            Value::Object({{"key", Str("a")}}));
  EXPECT_TRUE(engine::UpgradeIdentity(*entry_, {2, "{}"}).diagnostics.HasError());
  EXPECT_TRUE(engine::UpgradeIdentity(*entry_, {0, "["}).diagnostics.HasError());
  Use({});
  EXPECT_TRUE(engine::UpgradeIdentity(*entry_, {0, "{}"}).diagnostics.HasError());
}

TEST_F(StateTest, GeneratesConfig) {
  Use({});
  const Value state = Value::Object({{"id", Str("1")},
                                     {"name", Str("n")},
                                     {"size", Int(1)},
                                     {"token", Str("t")},
                                     {"secret", Value::Null()},
                                     {"timeouts", Value::Null()},
                                     {"rule", Value::List({})}});
  const Value config = engine::GenerateConfig(*entry_, state);
  EXPECT_EQ(config, state.With("id", Value::Null()).With("token", Value::Null()));
}

}  // namespace
}  // namespace sless::framework
