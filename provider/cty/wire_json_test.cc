#include "provider/cty/wire_json.h"

#include <gmock/gmock.h>

#include "client/base/testing/result_matchers.h"
#include "provider/cty/testing/random_value.h"

namespace sless::cty {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using base::IsOkAndHolds;
using ::testing::HasSubstr;

const Type kThing =
    Type::Object({{"id", Type::String()}, {"num", Type::Number()}, {"on", Type::Bool()}});

Value Thing(Value id, Value num, Value on) {
  return Value::Object({{"id", std::move(id)}, {"num", std::move(num)}, {"on", std::move(on)}});
}

TEST(WireJson, ReadsState) {
  EXPECT_THAT(DecodeJson("{ \"id\" : \"xy\",\n \"num\": 0.1 }", kThing),
              IsOkAndHolds(
                  Thing(Value::String("xy"), Value::Number(*Number::Parse("0.1")), Value::Null())));
  EXPECT_THAT(DecodeJson(R"({"id":5,"num":"7","on":"true"})", kThing),
              IsOkAndHolds(Thing(Value::String("5"), Value::Int(7), Value::Bool(true))));
  EXPECT_THAT(DecodeJson(R"({"id":"a","id":"b"})", kThing),
              IsOkAndHolds(Thing(Value::String("b"), Value::Null(), Value::Null())));
  EXPECT_THAT(DecodeJson("null", kThing), IsOkAndHolds(Value::Null()));
}

TEST(WireJson, KeepsDigitsOfNumbers) {
  for (const char* text : {"0.1", "18446744073709551616", "123456789012345678901234567890",
                           "-0.00000000000000000000001", "3.14159265358979323846264338327950288",
                           "9223372036854775808"}) {
    const auto value = DecodeJson(text, Type::Number());
    ASSERT_THAT(value, IsOk()) << text;
    EXPECT_EQ(value->AsNumber().ToString(), text);
    EXPECT_THAT(EncodeJson(*value, Type::Number()), IsOkAndHolds(std::string(text)));
  }
}

TEST(WireJson, ExtraAttributesByOption) {
  EXPECT_THAT(DecodeJson(R"({"id":"a","gone":{"x":[1]}})", kThing),
              IsError(Code::kInvalidArgument, HasSubstr("\"gone\"")));
  EXPECT_THAT(
      DecodeJson(R"({"id":"a","gone":{"x":[1]}})", kThing, {.ignore_extra_attributes = true}),
      IsOkAndHolds(Thing(Value::String("a"), Value::Null(), Value::Null())));
}

TEST(WireJson, RefusesBadInput) {
  for (const char* text :
       {"", "{", "nul", "{\"id\":}", "[1]", "\"x\"", "{\"id\":[]}", "{\"on\":\"yes\"}",
        "{\"num\":\"x\"}", "{\"id\":\"\xff\"}", "1 2", "{\"num\":1e999999}"}) {
    EXPECT_THAT(DecodeJson(text, kThing), IsError(Code::kInvalidArgument, HasSubstr(""))) << text;
  }
  EXPECT_THAT(DecodeAnyJson(std::string(100000, '[')),
              IsError(Code::kInvalidArgument, HasSubstr("deeper")));
  EXPECT_THAT(DecodeJson(R"({"a":[{"b":"x"}]})",
                         Type::Object({{"a", Type::List(Type::Object({{"b", Type::Bool()}}))}})),
              IsError(Code::kInvalidArgument, HasSubstr("a[0].b: wanted bool")));
}

TEST(WireJson, DynamicHasItsType) {
  const auto value =
      DecodeJson(R"({"value":["a",1],"type":["tuple",["string","number"]]})", Type::Dynamic());
  ASSERT_THAT(value, IsOk());
  EXPECT_EQ(*value, Value::Tuple({Value::String("a"), Value::Int(1)}));
  EXPECT_THAT(
      EncodeJson(*value, Type::Dynamic()),
      IsOkAndHolds(std::string(R"({"value":["a",1],"type":["tuple",["string","number"]]})")));
  EXPECT_THAT(DecodeJson("null", Type::Dynamic()), IsOkAndHolds(Value::Null()));
  EXPECT_THAT(DecodeJson("5", Type::Dynamic()),
              IsError(Code::kInvalidArgument, HasSubstr("dynamic")));
}

TEST(WireJson, UnknownHasNoForm) {
  EXPECT_THAT(EncodeJson(Thing(Value::Unknown(), Value::Null(), Value::Null()), kThing),
              IsError(Code::kInternal, HasSubstr("id: an unknown value")));
}

TEST(WireJson, RoundTripsRandomValues) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    testing::Random random(seed);
    const Type type = testing::RandomType(random, 4);
    const Value value =
        testing::RandomValue(random, type, {.null_percent = 10, .unknown_percent = 0});
    const auto text = EncodeJson(value, type);
    ASSERT_THAT(text, IsOk()) << value.ToString();
    ASSERT_THAT(DecodeJson(*text, type), IsOkAndHolds(value)) << *text;
  }
}

}  // namespace
}  // namespace sless::cty
