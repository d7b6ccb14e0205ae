#include "provider/framework/engine/validate.h"

#include <gmock/gmock.h>

#include "provider/framework/defaults.h"
#include "provider/framework/engine/shape.h"
#include "provider/framework/testing/fake_resource.h"
#include "provider/framework/validators.h"

namespace sless::framework {
namespace {

using cty::Value;
using ::testing::HasSubstr;

std::vector<Attribute> Inner() {
  return {{"port", Int64(), {.required = true, .validators = {Between(1, 65535)}}},
          {"made", String(), {.computed = true}}};
}

Schema ThingSchema() {
  return Schema{
      .attributes = {{"id", String(), {.computed = true}},
                     {"name", String(), {.required = true}},
                     {"size",
                      Int64(),
                      {.optional = true, .computed = true, .default_value = Int(1)}},
                     {"old", String(), {.optional = true, .deprecation = "Use name."}},
                     {"secret", String(), {.optional = true, .write_only = true}},
                     {"source_a",
                      String(),
                      {.optional = true, .validators = {ExactlyOneOf({cty::Path("source_b")})}}},
                     {"source_b", String(), {.optional = true}},
                     {"one", SingleNested(Inner()), {.optional = true}},
                     {"many", ListNested(Inner()), {.optional = true}},
                     {"keyed", MapNested(Inner()), {.optional = true}},
                     {"group", SetNested(Inner()), {.optional = true}}},
      .blocks = {Block{.name = "rule",
                       .nesting = Nesting::kList,
                       .attributes = Inner(),
                       .deprecation = "Use many."}}};
}

Value In(Value port, Value made = Value::Null()) {
  return Value::Object({{"port", std::move(port)}, {"made", std::move(made)}});
}

struct Case {
  const char* name;
  const char* attribute;
  Value value;
  const char* expected;  // the whole text; "" for none
};

TEST(ValidateResource, OneAttributeAtATime) {
  const std::vector<Case> cases = {
      {"Good", "size", Value::Null(), ""},
      {"RequiredNull", "name", Value::Null(),
       "error: name: Missing Configuration for Required Attribute: Attribute name must be set to a "
       "value that is not null."},
      {"RequiredUnknown", "name", Value::Unknown(), ""},
      {"ComputedSet", "id", Str("x"),
       "error: id: Invalid Configuration for Read-Only Attribute: Attribute id is set by the "
       "provider and cannot be configured: remove it."},
      {"Fraction", "size", Value::Number(*cty::Number::Parse("1.5")),
       "must be a whole number that fits into 64 bits, got: 1.5"},
      {"Huge", "size", Value::Number(*cty::Number::Parse("1e30")), "must be a whole number"},
      {"Deprecated", "old", Str("x"),
       "warning: old: Attribute Deprecated: Attribute old: Use name."},
      {"DeprecatedUnknown", "old", Value::Unknown(), ""},
      {"BothSources", "source_b", Str("x"),
       "Exactly one of source_a and source_b must be set, 2 are."},
      {"NoSource", "source_a", Value::Null(), "none is"},
      {"NestedOk", "one", In(Int(80)), ""},
      {"NestedRequired", "one", In(Value::Null()), "error: one.port: Missing"},
      {"NestedComputed", "one", In(Int(80), Str("x")),
       "error: one.made: Invalid Configuration for Read-Only"},
      {"NestedRange", "one", In(Int(0)),
       "error: one.port: Invalid Attribute Value: Attribute one.port must be between"},
      {"NestedHuge", "one", In(Value::Number(*cty::Number::Parse("1e30"))),
       "error: one.port: Invalid Attribute Value: Attribute one.port must be between"},
      {"NestedUnknown", "one", Value::Unknown(), ""},
      {"ListElement", "many", Value::List({In(Int(1)), In(Int(0))}),
       "error: many[1].port: Invalid"},
      {"ListNull", "many", Value::List({Value::Null()}),
       "error: many[0]: Invalid Attribute Value: Attribute many[0] must not be null"},
      {"ListUnknown", "many", Value::List({Value::Unknown()}), ""},
      {"MapElement", "keyed", Value::Map({{"k", In(Int(0))}}), "error: keyed[\"k\"].port"},
      {"SetElement", "group", Value::Set({In(Int(0))}), "error: group.port: Invalid"},
      {"Block", "rule", Value::List({In(Int(0))}),
       "warning: rule: Block Deprecated: Block rule: Use many.\nerror: rule[0].port"},
  };
  base::SystemClock clock;
  testing::FakeResource::Hooks hooks;
  hooks.schema = ThingSchema();
  const engine::Engine engine(std::make_unique<testing::FakeProvider>(std::vector{hooks}), clock);
  const auto* entry = engine.catalog().FindResource("fake_thing");
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const Value config = engine::EmptyObject(entry->schema)
                             .With("name", Str("n"))
                             .With("source_a", Str("a"))
                             .With(c.attribute, c.value);
    const auto found =
        engine::ValidateResource(*entry, config, {.write_only_attributes_allowed = true})
            .ToString();
    if (*c.expected == '\0') {
      EXPECT_EQ(found, "");
    } else {
      EXPECT_THAT(found, HasSubstr(c.expected));
      EXPECT_EQ(found.find("error:"), found.rfind("error:")) << found << ": one value, one error";
    }
  }
  const Value config = engine::EmptyObject(entry->schema)
                           .With("name", Str("n"))
                           .With("source_a", Str("a"))
                           .With("secret", Str("s"));
  EXPECT_EQ(
      engine::ValidateResource(*entry, config, {.write_only_attributes_allowed = true}).ToString(),
      "");
  EXPECT_THAT(engine::ValidateResource(*entry, config, {}).ToString(),
              HasSubstr("secret: WriteOnly Attribute Not Allowed"));
  EXPECT_TRUE(engine::ValidateResource(*entry, Value::Null(), {}).empty());
}

TEST(ValidateResource, ThrowingCodeIsReported) {
  base::SystemClock clock;
  testing::FakeResource::Hooks hooks;
  hooks.schema.attributes = {
      {"a", String(), {.optional = true, .validators = {{"x", [](auto&, auto&) { throw 1; }}}}}};
  hooks.validate = [](auto&, auto&) { throw std::runtime_error("whole"); };
  const engine::Engine engine(std::make_unique<testing::FakeProvider>(std::vector{hooks}), clock);
  const auto* entry = engine.catalog().FindResource("fake_thing");
  const auto found = engine::ValidateResource(*entry, Value::Object({{"a", Str("x")}}), {});
  EXPECT_EQ(found.size(), 2u);
  EXPECT_THAT(found.ToString(), HasSubstr("whole"));
}

}  // namespace
}  // namespace sless::framework
