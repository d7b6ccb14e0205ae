// The host's rules as tables: what it says about plans and results.

#include "provider/framework/engine/consistency.h"

#include <gmock/gmock.h>

#include "provider/framework/defaults.h"
#include "provider/framework/testing/core_driver.h"

namespace sless::framework {
namespace {

using cty::Value;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const Value kNull = Value::Null();
const Value kUnknown = Value::Unknown();

struct PlannedCase {
  const char* name;
  AttributeOptions options;
  Value prior, config, planned;
  const char* reason;  // nullptr: fine
};

TEST(CheckPlanned, OneAttribute) {
  const AttributeOptions optional{.optional = true};
  const AttributeOptions computed{.computed = true};
  const AttributeOptions both{.optional = true, .computed = true};
  const AttributeOptions secret{.optional = true, .sensitive = true};
  const AttributeOptions write_only{.optional = true, .write_only = true};
  const std::vector<PlannedCase> cases = {
      {"AsConfigured", optional, kNull, Str("a"), Str("a"), nullptr},
      {"UnknownAsConfigured", optional, kNull, kUnknown, kUnknown, nullptr},
      {"KeepsPriorSpelling", optional, Str("A"), Str("a"), Str("A"), nullptr},
      {"PriorForNullConfig", optional, Str("A"), kNull, Str("A"), "for a non-computed attribute"},
      {"NotConfigured", optional, kNull, kNull, Str("x"),
       "planned value \"x\" for a non-computed attribute"},
      {"OtherThanConfigured", optional, kNull, Str("a"), Str("b"),
       "planned value \"b\" does not match config value \"a\""},
      {"NeitherOfBoth", optional, Str("c"), Str("a"), Str("b"), "nor prior value \"c\""},
      {"UnknownForKnown", optional, kNull, Str("a"), kUnknown, "does not match config"},
      {"KnownForUnknown", optional, kNull, kUnknown, Str("a"), "does not match config"},
      {"NullForConfigured", optional, kNull, Str("a"), kNull, "does not match config"},
      {"ComputedAnything", computed, Str("a"), kNull, Str("b"), nullptr},
      {"ComputedUnknown", computed, Str("a"), kNull, kUnknown, nullptr},
      {"BothUnset", both, kNull, kNull, Str("b"), nullptr},
      {"BothConfigured", both, kNull, Str("a"), Str("b"), "does not match config"},
      {"BothConfiguredUnknown", both, kNull, Str("a"), kUnknown, "does not match config"},
      {"WriteOnlySet", write_only, kNull, Str("a"), Str("a"), "write-only"},
      {"WriteOnlyNull", write_only, kNull, Str("a"), kNull, nullptr},
      {"SensitiveIsHidden", secret, Str("old"), Str("hunter2"), Str("x"), "(sensitive)"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Schema schema;
    schema.attributes = {{"x", String(), c.options}};
    const auto object = [](const Value& v) { return Value::Object({{"x", v}}); };
    const auto found =
        engine::CheckPlanned(schema, object(c.config), object(c.prior), object(c.planned));
    if (c.reason == nullptr) {
      EXPECT_THAT(found, IsEmpty());
    } else {
      EXPECT_THAT(
          found, Contains(AllOf(HasSubstr(c.reason), HasSubstr("x: "), Not(HasSubstr("hunter2")))));
    }
  }
}

TEST(CheckPlanned, RootAndShape) {
  Schema schema;
  schema.attributes = {{"x", String(), {.optional = true}}};
  const Value object = Value::Object({{"x", kNull}});
  EXPECT_THAT(engine::CheckPlanned(schema, kNull, object, kNull), IsEmpty());
  EXPECT_THAT(engine::CheckPlanned(schema, kNull, object, object),
              Contains(HasSubstr("non-null destroy")));
  EXPECT_THAT(engine::CheckPlanned(schema, object, kNull, kNull),
              Contains(HasSubstr("config wants existence")));
  EXPECT_THAT(engine::CheckPlanned(schema, object, kNull, kUnknown),
              Contains(HasSubstr("unknown object")));
  EXPECT_THAT(engine::CheckPlanned(schema, object, kNull, Value::Object({})),
              Contains(HasSubstr("missing")));
}

std::vector<Attribute> Inner() {
  return {{"a", String(), {.optional = true}}, {"c", String(), {.computed = true}}};
}
Value In(Value a, Value c = Value::Null()) {
  return Value::Object({{"a", std::move(a)}, {"c", std::move(c)}});
}

struct NestedCase {
  const char* name;
  Nesting nesting;
  Value prior, config, planned;
  const char* attribute_reason;  // as nested attribute
  const char* block_reason;      // as block; nullptr: fine
};

TEST(CheckPlanned, NestedAttributesAndBlocks) {
  const auto list = [](std::vector<Value> v) { return Value::List(std::move(v)); };
  const auto set = [](std::vector<Value> v) { return Value::Set(std::move(v)); };
  const std::vector<NestedCase> cases = {
      {"Computed", Nesting::kSingle, kNull, In(Str("a")), In(Str("a"), kUnknown), nullptr, nullptr},
      {"Wrong", Nesting::kSingle, kNull, In(Str("a")), In(Str("b")), "x.a: planned value",
       "x.a: planned value"},
      {"Absent", Nesting::kSingle, kNull, In(Str("a")), kNull, "x: planned for absence",
       "x: planned for absence"},
      {"Unknown", Nesting::kSingle, kNull, In(Str("a")), kUnknown, "planned unknown",
       "must not be unknown itself"},
      {"ListOk", Nesting::kList, list({}), list({In(Str("a"))}), list({In(Str("a"), kUnknown)}),
       nullptr, nullptr},
      {"ListCount", Nesting::kList, list({In(Str("q"))}), list({In(Str("a"))}), list({}),
       "count in plan (0) disagrees with count in config (1)", "block count in plan (0) disagrees"},
      {"ListNull", Nesting::kList, list({}), list({In(Str("a"))}), kNull, "planned for absence",
       "must be empty"},
      {"ListElement", Nesting::kList, list({}), list({In(Str("a"))}), list({In(Str("z"))}),
       "x[0].a", "x[0].a"},
      {"ListPrior", Nesting::kList, list({In(Str("A"))}), list({In(Str("a"))}),
       list({In(Str("A"))}), nullptr, nullptr},
      {"SetCountOnly", Nesting::kSet, set({}), set({In(Str("a"))}), set({In(Str("z"))}), nullptr,
       nullptr},
      {"SetCount", Nesting::kSet, set({In(Str("q"))}), set({In(Str("a"))}), set({}), "count",
       "count"},
      {"MapKey", Nesting::kMap, Value::Map({}), Value::Map({{"k", In(Str("a"))}}),
       Value::Map({{"j", In(Str("a"))}}), "map key \"j\"", "map key \"j\""},
      {"MapElement", Nesting::kMap, Value::Map({}), Value::Map({{"k", In(Str("a"))}}),
       Value::Map({{"k", In(Str("b"))}}), "x[\"k\"].a", "x[\"k\"].a"},
      {"DynamicBlock", Nesting::kList, list({In(Str("q"))}), kUnknown, list({}),
       "x: planned a value for an unknown", "unknown dynamic block"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto object = [](const Value& v) { return Value::Object({{"x", v}}); };
    Schema attribute;
    attribute.attributes = {{"x", {}, {.optional = true}}};
    switch (c.nesting) {
      case Nesting::kSingle:
        attribute.attributes[0].type = SingleNested(Inner());
        break;
      case Nesting::kList:
        attribute.attributes[0].type = ListNested(Inner());
        break;
      case Nesting::kSet:
        attribute.attributes[0].type = SetNested(Inner());
        break;
      case Nesting::kMap:
        attribute.attributes[0].type = MapNested(Inner());
        break;
    }
    Schema block;
    block.blocks = {Block{.name = "x", .nesting = c.nesting, .attributes = Inner()}};
    const auto check = [&](const Schema& schema, const char* reason) {
      const auto found =
          engine::CheckPlanned(schema, object(c.config), object(c.prior), object(c.planned));
      if (reason == nullptr) {
        EXPECT_THAT(found, IsEmpty());
      } else {
        EXPECT_THAT(found, Contains(HasSubstr(reason)));
      }
    };
    check(attribute, c.attribute_reason);
    check(block, c.block_reason);
  }
}

struct AppliedCase {
  const char* name;
  cty::Type type;
  Value planned, actual;
  const char* reason;
};

TEST(CheckApplied, OneValue) {
  const auto s = cty::Type::String();
  const auto list = cty::Type::List(s);
  const auto set = cty::Type::Set(s);
  const auto map = cty::Type::Map(s);
  const auto strings = [](std::vector<std::string> v) { return Value::StringList(v); };
  const std::vector<AppliedCase> cases = {
      {"Same", s, Str("a"), Str("a"), nullptr},
      {"UnknownDecided", s, kUnknown, Str("a"), nullptr},
      {"UnknownToNull", s, kUnknown, kNull, nullptr},
      {"Other", s, Str("a"), Str("b"), "was \"a\", but now \"b\""},
      {"ToNull", s, Str("a"), kNull, "but now null"},
      {"FromNull", s, kNull, Str("a"), "was null"},
      {"StillUnknown", s, kUnknown, kUnknown, "still unknown"},
      {"KnownToUnknown", s, Str("a"), kUnknown, "now unknown"},
      {"ListShrinks", list, strings({"a", "b"}), strings({"a"}), "length changed from 2 to 1"},
      {"ListElement", list, strings({"a"}), strings({"b"}), "x[0]"},
      {"ListPartKnown", list, Value::List({kUnknown, Str("b")}), strings({"z", "b"}), nullptr},
      {"SetDecided", set, Value::Set({kUnknown, Str("b")}), Value::StringSet({"z", "b"}), nullptr},
      {"SetShrinks", set, Value::Set({kUnknown, Str("b")}), Value::StringSet({"b"}), nullptr},
      {"SetGrows", set, Value::StringSet({"b"}), Value::StringSet({"a", "b"}),
       "length changed from 1 to 2"},
      {"SetVanished", set, Value::StringSet({"a", "b"}), Value::StringSet({"b"}),
       "does not correlate"},
      {"MapNew", map, Value::StringMap({}), Value::StringMap({{"k", "v"}}),
       "new element \"k\" has appeared"},
      {"MapGone", map, Value::StringMap({{"k", "v"}}), Value::StringMap({}),
       "element \"k\" has vanished"},
      {"MapElement", map, Value::StringMap({{"k", "v"}}), Value::StringMap({{"k", "w"}}),
       "x[\"k\"]: was"},
      {"EmptyIsNotNull", list, Value::List({}), kNull, "but now null"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Schema schema;
    schema.attributes = {{"x", {c.type}, {.optional = true, .computed = true}}};
    const auto object = [](const Value& v) { return Value::Object({{"x", v}}); };
    const auto found = engine::CheckApplied(schema, object(c.planned), object(c.actual));
    if (c.reason == nullptr) {
      EXPECT_THAT(found, IsEmpty());
    } else {
      EXPECT_THAT(found, Contains(HasSubstr(c.reason)));
    }
  }
}

TEST(CheckApplied, SensitiveIsHidden) {
  Schema schema;
  schema.attributes = {{"x", String(), {.optional = true, .sensitive = true}}};
  const auto found = engine::CheckApplied(schema, Value::Object({{"x", Str("hunter2")}}),
                                          Value::Object({{"x", Str("b")}}));
  EXPECT_THAT(found, Contains(AllOf(HasSubstr("sensitive attribute"), Not(HasSubstr("hunter2")))));
}

// Each way of nesting: the secret stands in a part, or the whole that it is a part of is secret.
TEST(Consistency, SensitivePartsAreHidden) {
  const Value old = Value::Object({{"a", Str("hunter1")}});
  const Value now = Value::Object({{"a", Str("hunter2")}});
  struct Case {
    const char* name;
    Nesting nesting;
    Value old, now;
  };
  const std::vector<Case> cases = {
      {"Single", Nesting::kSingle, old, now},
      {"List", Nesting::kList, Value::List({old}), Value::List({now})},
      {"Map", Nesting::kMap, Value::Map({{"k", old}}), Value::Map({{"k", now}})},
  };
  const auto attribute = [](Nesting nesting, bool whole) {
    const std::vector<Attribute> parts{{"a", String(), {.optional = true, .sensitive = !whole}}};
    const auto type = nesting == Nesting::kSingle ? SingleNested(parts)
                      : nesting == Nesting::kList ? ListNested(parts)
                                                  : MapNested(parts);
    return Attribute{"x", type, {.optional = true, .sensitive = whole}};
  };
  const auto object = [](const Value& v) { return Value::Object({{"x", v}}); };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    Schema part, whole, block;
    part.attributes = {attribute(c.nesting, false)};
    whole.attributes = {attribute(c.nesting, true)};
    block.blocks = {
        Block{.name = "x", .nesting = c.nesting, .attributes = part.attributes[0].type.attributes}};
    for (const auto* schema : {&part, &whole, &block}) {
      for (const Value& config : {c.old, kNull}) {
        const auto planned =
            engine::CheckPlanned(*schema, object(config), object(kNull), object(c.now));
        EXPECT_FALSE(planned.empty());
        EXPECT_THAT(planned, Each(Not(HasSubstr("hunter"))));
      }
      const auto applied = engine::CheckApplied(*schema, object(c.old), object(c.now));
      EXPECT_THAT(applied, Contains(HasSubstr("sensitive attribute")));
      EXPECT_THAT(applied, Each(Not(HasSubstr("hunter"))));
    }
  }
}

// --- the host's proposal ---

struct ProposeCase {
  const char* name;
  AttributeOptions options;
  Value prior, config, proposed;
};

TEST(ProposeNewState, OneAttribute) {
  const AttributeOptions optional{.optional = true};
  const AttributeOptions computed{.computed = true};
  const AttributeOptions both{.optional = true, .computed = true};
  for (const auto& c :
       std::vector<ProposeCase>{{"Configured", optional, Str("p"), Str("c"), Str("c")},
                                {"Removed", optional, Str("p"), kNull, kNull},
                                {"Computed", computed, Str("p"), kNull, Str("p")},
                                {"BothUnset", both, Str("p"), kNull, Str("p")},
                                {"BothSet", both, Str("p"), Str("c"), Str("c")},
                                {"BothUnknown", both, Str("p"), kUnknown, kUnknown}}) {
    SCOPED_TRACE(c.name);
    Schema schema;
    schema.attributes = {{"x", String(), c.options}};
    const auto object = [](const Value& v) { return Value::Object({{"x", v}}); };
    EXPECT_EQ(testing::ProposeNewState(schema, object(c.prior), object(c.config)),
              object(c.proposed));
    EXPECT_EQ(testing::ProposeNewState(schema, kNull, object(c.config)).Get("x"), c.config);
    EXPECT_EQ(testing::ProposeNewState(schema, object(c.prior), kNull), kNull);
  }
}

TEST(ProposeNewState, Nested) {
  Schema schema;
  schema.attributes = {{"x", SetNested(Inner()), {.optional = true}}};
  const auto object = [](const Value& v) { return Value::Object({{"x", v}}); };
  const Value prior = Value::Set({In(Str("a"), Str("1")), In(Str("b"), Str("2"))});
  const Value config = Value::Set({In(Str("b")), In(Str("z"))});
  EXPECT_EQ(testing::ProposeNewState(schema, object(prior), object(config)),
            object(Value::Set({In(Str("b"), Str("2")), In(Str("z"))})));
  schema.attributes[0].type = ListNested(Inner());
  EXPECT_EQ(testing::ProposeNewState(schema, object(Value::List({In(Str("a"), Str("1"))})),
                                     object(Value::List({In(Str("q")), In(Str("z"))}))),
            object(Value::List({In(Str("q"), Str("1")), In(Str("z"))})));
  // Optional and computed, and the prior value stems from a configuration that is gone.
  schema.attributes[0] = {"x", SingleNested(Inner()), {.optional = true, .computed = true}};
  EXPECT_EQ(testing::ProposeNewState(schema, object(In(Str("a"), Str("1"))), object(kNull)),
            object(kNull));
  EXPECT_EQ(testing::ProposeNewState(schema, object(In(kNull, Str("1"))), object(kNull)),
            object(In(kNull, Str("1"))));
}

}  // namespace
}  // namespace sless::framework
