#include "provider/framework/schema.h"

#include <gmock/gmock.h>

#include "provider/framework/defaults.h"
#include "provider/framework/plan_modifiers.h"
#include "provider/framework/timeouts.h"
#include "provider/framework/validators.h"

namespace sless::framework {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Schema Good() {
  return Schema{
      .description = "A thing.",
      .attributes =
          {{"id", String(), {.computed = true, .plan_modifiers = {UseStateForUnknown()}}},
           {"name", String(), {.required = true}},
           {"size", Int64(), {.optional = true, .computed = true, .default_value = Int(1)}},
           {"secret", String(), {.optional = true, .write_only = true}},
           {"any", Dynamic(), {.optional = true}},
           {"http", SingleNested({{"path", String(), {.optional = true}}}), {.optional = true}},
           {"rules", SetNested({{"port", Int64(), {.required = true}}}), {.optional = true}}},
      .blocks = {TimeoutsBlock({{"create", "30m"}, {"delete", ""}})}};
}

TEST(Schema, ImpliedType) {
  EXPECT_EQ(
      ImpliedType(Good()).ToJson(),
      R"(["object",{"any":"dynamic","http":["object",{"path":"string"}],"id":"string","name":"string",)"
      R"("rules":["set",["object",{"port":"number"}]],"secret":"string","size":"number",)"
      R"("timeouts":["object",{"create":"string","delete":"string"}]}])");
}

TEST(Schema, FindsAttributesByPath) {
  const Schema schema = Good();
  ASSERT_NE(FindAttribute(schema, cty::Path("http").Attribute("path")), nullptr);
  EXPECT_EQ(FindAttribute(schema, cty::Path("http").Attribute("path"))->name, "path");
  EXPECT_EQ(FindAttribute(schema, cty::Path("timeouts").Attribute("create"))->name, "create");
  EXPECT_EQ(FindAttribute(schema, cty::Path("timeouts")), nullptr);  // a block
  EXPECT_EQ(FindAttribute(schema, cty::Path("http").Attribute("nope")), nullptr);
  EXPECT_EQ(FindAttribute(schema, cty::Path("nope").Attribute("path")), nullptr);
}

TEST(ValidateSchema, GoodOne) {
  EXPECT_THAT(ValidateSchema(Good(), SchemaUse::kResource), IsEmpty());
}

struct Case {
  const char* name;
  Attribute attribute;
  SchemaUse use;
  const char* problem;
};

TEST(ValidateSchema, Breaches) {
  const std::vector<Case> cases = {
      {"NoFlag",
       {"a", String(), {}},
       SchemaUse::kResource,
       "must be required, optional or computed"},
      {"RequiredOptional",
       {"a", String(), {.required = true, .optional = true}},
       SchemaUse::kResource,
       "both required and optional"},
      {"RequiredComputed",
       {"a", String(), {.required = true, .computed = true}},
       SchemaUse::kResource,
       "both required and computed"},
      {"WriteOnlyComputed",
       {"a", String(), {.optional = true, .computed = true, .write_only = true}},
       SchemaUse::kResource,
       "cannot be computed"},
      {"DefaultNotComputed",
       {"a", Int64(), {.optional = true, .default_value = Int(1)}},
       SchemaUse::kResource,
       "default needs computed"},
      {"DefaultOfWrongType",
       {"a", Int64(), {.optional = true, .computed = true, .default_value = Str("x")}},
       SchemaUse::kResource,
       "does not fit"},
      {"DynamicInList",
       {"a", ListOf(cty::Type::Dynamic()), {.optional = true}},
       SchemaUse::kResource,
       "no dynamic"},
      {"DynamicInNestedList",
       {"a", ListNested({{"d", Dynamic(), {.optional = true}}}), {.optional = true}},
       SchemaUse::kResource,
       "no dynamic"},
      {"WriteOnlyInSet",
       {"a",
        SetNested({{"w", String(), {.optional = true, .write_only = true}}}),
        {.optional = true}},
       SchemaUse::kResource,
       "inside a set"},
      {"BadName", {"camelCase", String(), {.optional = true}}, SchemaUse::kResource, "lower-case"},
      {"NameBeginsWithDigit",
       {"1a", String(), {.optional = true}},
       SchemaUse::kResource,
       "lower-case"},
      {"Reserved", {"count", String(), {.optional = true}}, SchemaUse::kResource, "reserved"},
      {"ReservedInProvider",
       {"alias", String(), {.optional = true}},
       SchemaUse::kProvider,
       "reserved"},
      {"ComputedInProvider",
       {"a", String(), {.computed = true}},
       SchemaUse::kProvider,
       "nothing computed"},
      {"ModifierInDataSource",
       {"a", String(), {.optional = true, .plan_modifiers = {RequiresReplace()}}},
       SchemaUse::kDataSource,
       "plan modifiers"},
      {"NestedBreach",
       {"a", SingleNested({{"b", String(), {}}}), {.optional = true}},
       SchemaUse::kResource,
       "a.b: must be"},
      {"EmptyNested",
       {"a", SingleNested({}), {.optional = true}},
       SchemaUse::kResource,
       "needs attributes"},
      {"Twice", {"same", String(), {.optional = true}}, SchemaUse::kResource, "declared twice"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Schema schema;
    schema.attributes = {{"same", String(), {.optional = true}}, c.attribute};
    EXPECT_THAT(ValidateSchema(schema, c.use), Contains(HasSubstr(c.problem)));
  }
}

TEST(ValidateSchema, Blocks) {
  Schema schema;
  schema.blocks = {Block{.name = "a", .nesting = Nesting::kSingle, .max_items = 2},
                   Block{.name = "b", .nesting = Nesting::kList, .min_items = 3, .max_items = 2},
                   Block{.name = "c", .nesting = Nesting::kMap, .min_items = 1}};
  const auto problems = ValidateSchema(schema, SchemaUse::kResource);
  EXPECT_THAT(problems, Contains(HasSubstr("a: a single block")));
  EXPECT_THAT(problems, Contains(HasSubstr("b: min_items above")));
  EXPECT_THAT(problems, Contains(HasSubstr("c: a map block")));
}

}  // namespace
}  // namespace sless::framework
