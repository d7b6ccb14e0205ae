#include "provider/cty/value.h"

#include <gmock/gmock.h>

#include "client/base/testing/result_matchers.h"

namespace sless::cty {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct NumberCase {
  const char* text;
  const char* canonical;  // nullptr: refused
};

TEST(Number, ParsesToCanonicalText) {
  const NumberCase cases[] = {
      {"0", "0"},
      {"-0", "0"},
      {"+7", "7"},
      {"007", "7"},
      {"1.50", "1.5"},
      {"1e3", "1000"},
      {"1.5e1", "15"},
      {"-2.5E-3", "-0.0025"},
      {"0.000", "0"},
      {"1.0", "1"},
      {".5", "0.5"},
      {"5.", "5"},
      {"-0.0", "0"},
      {"100e-2", "1"},
      {"1e-1", "0.1"},
      {"9223372036854775807", "9223372036854775807"},
      {"9223372036854775808", "9223372036854775808"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"123456789012345678901234567890.5", "123456789012345678901234567890.5"},
      {"", nullptr},
      {"-", nullptr},
      {"1e", nullptr},
      {"1e+", nullptr},
      {"0x10", nullptr},
      {"1 ", nullptr},
      {" 1", nullptr},
      {"nan", nullptr},
      {"inf", nullptr},
      {"1e99999", nullptr},
      {"1.2.3", nullptr},
      {"1e99999999999", nullptr},
      {"--1", nullptr},
      {"1_000", nullptr},
      {".", nullptr},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const auto number = Number::Parse(c.text);
    ASSERT_EQ(number.has_value(), c.canonical != nullptr);
    if (c.canonical != nullptr) {
      EXPECT_EQ(number->ToString(), c.canonical);
    }
  }
  EXPECT_FALSE(Number::Parse(std::string(9000, '1')).has_value());
}

TEST(Number, EqualByValue) {
  EXPECT_EQ(*Number::Parse("1.0"), Number(1));
  EXPECT_EQ(*Number::Parse("1e2"), Number(100));
  EXPECT_NE(*Number::Parse("0.1"), *Number::FromExactDouble(0.1));
  EXPECT_EQ(*Number::Parse("0.1"), *Number::FromDouble(0.1));
  EXPECT_EQ(*Number::Parse("0.5"), *Number::FromExactDouble(0.5));
  EXPECT_EQ(Number::FromDouble(1e300)->AsDouble(), 1e300);
  EXPECT_EQ(Number::FromExactDouble(5e-324)->AsExactDouble(), 5e-324);
  EXPECT_EQ(Number::Parse("0.1")->AsExactDouble(), std::nullopt);
  EXPECT_FALSE(Number::FromDouble(std::numeric_limits<double>::quiet_NaN()).has_value());
  EXPECT_FALSE(Number::FromDouble(std::numeric_limits<double>::infinity()).has_value());
  EXPECT_EQ(Number::Parse("9223372036854775808")->AsInt64(), std::nullopt);
}

TEST(Type, JsonBothWays) {
  for (const char* json :
       {R"("string")", R"("number")", R"("bool")", R"("dynamic")", R"(["list","string"])",
        R"(["set",["map","number"]])", R"(["object",{"a":"string","b":["list","bool"]}])",
        R"(["tuple",["string","bool"]])", R"(["tuple",[]])", R"(["object",{}])"}) {
    const auto type = Type::FromJson(json);
    ASSERT_THAT(type, IsOk()) << json;
    EXPECT_EQ(type->ToJson(), json);
    EXPECT_EQ(*type, *Type::FromJson(type->ToJson()));
  }
  EXPECT_EQ(Type::FromJson(R"(["object",{"a":"string"},["a"]])")->ToJson(),
            R"(["object",{"a":"string"}])");
  for (const char* bad :
       {"", "string", R"("String")", R"(["list"])", R"(["list","string","x"])", R"(["object",[]])",
        R"(["tuple",{}])", R"([])", R"({})", R"(["box","string"])", "null", R"(["list",null])"}) {
    EXPECT_THAT(Type::FromJson(bad), IsError(Code::kInvalidArgument, HasSubstr(""))) << bad;
  }
  EXPECT_TRUE(Type::Object({{"a", Type::List(Type::Dynamic())}}).HasDynamic());
  EXPECT_FALSE(Type::List(Type::String()) == Type::Set(Type::String()));
}

TEST(Path, Prints) {
  EXPECT_EQ(Path("a").Attribute("b").Index(0).Key("k").ToString(), R"(a.b[0]["k"])");
  EXPECT_EQ(Path("a").Key("x\"\\\n").ToString(), R"(a["x\"\\\n"])");
  EXPECT_EQ(Path().ToString(), "");
  EXPECT_TRUE(Path("a").Index(1).StartsWith(Path("a")));
  EXPECT_FALSE(Path("a").StartsWith(Path("b")));
}

Value Sample() {
  return Value::Object({{"name", Value::String("n")},
                        {"list", Value::List({Value::Int(1), Value::Unknown()})},
                        {"map", Value::Map({{"k", Value::String("v")}})},
                        {"none", Value::Null()}});
}

TEST(Value, EqualityIsByValue) {
  EXPECT_EQ(Value::Set({Value::Int(2), Value::Int(1), Value::Int(2)}),
            Value::Set({Value::Int(1), Value::Int(2)}));
  EXPECT_NE(Value::List({Value::Int(2), Value::Int(1)}),
            Value::List({Value::Int(1), Value::Int(2)}));
  EXPECT_EQ(Value::Set({Value::Unknown(), Value::Unknown()}).size(), 2u);
  EXPECT_EQ(Value::Number(*Number::Parse("1.0")), Value::Int(1));
  EXPECT_NE(Value::Null(), Value::Unknown());
  EXPECT_NE(Value::List({}), Value::Null());
  EXPECT_NE(Value::Map({{"a", Value::Null()}}), Value::Map({}));
  EXPECT_NE(Value::Map({{"a", Value::Int(1)}}), Value::Map({{"b", Value::Int(1)}}));
  EXPECT_EQ(Sample(), Sample());
}

TEST(Value, WrongAccessIsHarmless) {
  const Value text = Value::String("x");
  EXPECT_EQ(text.AsNumber().AsInt64(), 0);
  EXPECT_FALSE(text.AsBool());
  EXPECT_TRUE(text.AsList().empty());
  EXPECT_TRUE(text.AsMap().empty());
  EXPECT_EQ(Value::Int(1).AsString(), "");
  EXPECT_TRUE(text.Get("x").IsNull());
  EXPECT_EQ(text.With("a", Value::Int(1)), text);
}

TEST(Value, AtAndWithAt) {
  const Value v = Sample();
  EXPECT_EQ(v.At(Path("list").Index(0)), Value::Int(1));
  EXPECT_EQ(v.At(Path("map").Key("k")), Value::String("v"));
  EXPECT_EQ(v.At(Path("list").Index(2)), std::nullopt);
  EXPECT_EQ(v.At(Path("list").Index(-1)), std::nullopt);
  EXPECT_EQ(v.At(Path("none").Attribute("x")), std::nullopt);
  EXPECT_EQ(v.At(Path()), v);
  EXPECT_EQ(v.WithAt(Path("list").Index(1), Value::Int(7)).At(Path("list").Index(1)),
            Value::Int(7));
  EXPECT_EQ(v.WithAt(Path("map").Key("new"), Value::String("w")).At(Path("map").Key("new")),
            Value::String("w"));
  EXPECT_EQ(v.WithAt(Path("nowhere").Attribute("x"), Value::Int(1)), v);
  EXPECT_EQ(v.WithAt(Path("list").Index(9), Value::Int(1)), v);
}

TEST(Value, UnknownParts) {
  EXPECT_FALSE(Sample().IsWhollyKnown());
  EXPECT_THAT(UnknownPaths(Sample()), ElementsAre(Path("list").Index(1)));
  const Value known = UnknownsToNull(Sample());
  EXPECT_TRUE(known.IsWhollyKnown());
  EXPECT_EQ(known.At(Path("list").Index(1)), Value::Null());
  EXPECT_EQ(known.Get("name"), Value::String("n"));
  // In a set, two unknowns become one null.
  EXPECT_EQ(UnknownsToNull(Value::Set({Value::Unknown(), Value::Unknown()})).size(), 1u);
}

TEST(Value, InfersTypesOfDynamicValues) {
  EXPECT_EQ(InferType(Value::StringList({"a"})).ToJson(), R"(["list","string"])");
  EXPECT_EQ(InferType(Value::List({Value::Int(1), Value::Bool(true)})).ToJson(),
            R"(["tuple",["number","bool"]])");
  EXPECT_EQ(InferType(Value::List({})).ToJson(), R"(["tuple",[]])");
  EXPECT_EQ(InferType(Value::Map({{"a", Value::Int(1)}})).ToJson(), R"(["map","number"])");
  EXPECT_EQ(InferType(Value::Map({{"a", Value::Int(1)}, {"b", Value::Bool(true)}})).ToJson(),
            R"(["object",{"a":"number","b":"bool"}])");
  EXPECT_EQ(Conforms(Value::List({Value::Int(1), Value::Bool(true)}), Type::Dynamic()).has_value(),
            true);
  EXPECT_EQ(Conforms(Value::List({}), Type::Dynamic()).has_value(), true);
}

TEST(Value, ConformsNamesTheWay) {
  const Type type = Type::Object({{"a", Type::List(Type::Object({{"b", Type::Bool()}}))}});
  const Value wrong = Value::Object({{"a", Value::List({Value::Object({{"b", Value::Int(1)}})})}});
  EXPECT_THAT(Conforms(wrong, type),
              IsError(Code::kInternal, HasSubstr("a[0].b: wanted bool, found a number")));
  EXPECT_THAT(Conforms(Value::Null(), type), IsOk());
  EXPECT_THAT(Conforms(Value::Unknown(), type), IsOk());
  EXPECT_THAT(Conforms(NullObject(type), type), IsOk());
  Value deep = Value::Int(1);
  for (int i = 0; i < 200; ++i) deep = Value::List({deep});
  EXPECT_THAT(Conforms(deep, Type::Dynamic()), IsError(Code::kInternal, HasSubstr("deeper")));
}

}  // namespace
}  // namespace sless::cty
