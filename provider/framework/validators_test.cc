#include "provider/framework/validators.h"

#include <gmock/gmock.h>

#include "provider/framework/timeouts.h"

namespace sless::framework {
namespace {

using cty::Path;
using cty::Value;
using ::testing::HasSubstr;
using ::testing::Not;

Diagnostics Check(const Validator& validator, const Value& value,
                  const Value& config = Value::Object({}), bool sensitive = false) {
  Diagnostics out;
  const Path path("a");
  if (value.IsKnown() || validator.sees_null_and_unknown)
    validator.check({path, value, config, sensitive}, out);
  return out;
}

struct Case {
  const char* name;
  Validator validator;
  Value value;
  const char* message;  // nullptr: accepted
};

Value Num(const char* text) { return Value::Number(*cty::Number::Parse(text)); }

TEST(Validators, OverOneValue) {
  const std::vector<Case> cases = {
      {"LengthOk", LengthBetween(1, 3), Value::String("äöü"), nullptr},
      {"LengthLong", LengthBetween(1, 3), Value::String("äöüx"),
       "Attribute a must have 1 to 3 characters, got: 4."},
      {"LengthEmpty", LengthAtLeast(1), Value::String(""), "at least 1 characters, got: 0"},
      {"LengthAtMost", LengthAtMost(2), Value::String("abc"), "at most 2"},
      {"OneOfOk", OneOf({"python3.11", "nodejs20"}), Value::String("nodejs20"), nullptr},
      {"OneOfNear", OneOf({"python3.11", "nodejs20"}), Value::String("python3.1"),
       "must be one of: \"python3.11\", \"nodejs20\", got: \"python3.1\". Did you mean "
       "\"python3.11\"?"},
      {"OneOfCase", OneOf({"skip"}), Value::String("Skip"), "Did you mean"},
      {"MatchesOk", Matches("[a-z]+", "be lower-case letters"), Value::String("abc"), nullptr},
      {"MatchesWhole", Matches("[a-z]+", "be lower-case letters"), Value::String("abc1"),
       "must be lower-case letters, got: \"abc1\""},
      {"MatchesLong", Matches("(a|b)*", "be a or b"), Value::String(std::string(100000, 'a')),
       "at most 4096 bytes"},
      {"MatchesDeep", Matches("(a|b)*", "be a or b"), Value::String(std::string(4096, 'a')),
       nullptr},
      {"Json", JsonText(), Value::String("{\"a\":1}"), nullptr},
      {"NotJson", JsonText(), Value::String("{a}"), "must be JSON text"},
      {"BetweenLow", Between(32, 32768), Value::Int(31),
       "Attribute a must be between 32 and 32768, got: 31."},
      {"BetweenEdge", Between(32, 32768), Value::Int(32), nullptr},
      {"BetweenHuge", Between(0, 10), Num("18446744073709551616"), "got: 18446744073709551616"},
      {"BetweenFraction", Between(0, 10), Num("9.5"), nullptr},
      {"BetweenAbove", Between(0, 10), Num("10.00000001"), "between"},
      {"AtLeast", AtLeast(0), Value::Int(-1), "at least 0, got: -1"},
      {"AtMost", AtMost(5), Value::Int(6), "at most 5"},
      {"SizeOk", SizeBetween(1, 2), Value::StringList({"a"}), nullptr},
      {"SizeEmpty", SizeAtLeast(1), Value::List({}), "at least 1 elements, got: 0 elements"},
      {"SizeMap", SizeAtMost(1), Value::StringMap({{"a", ""}, {"b", ""}}), "at most 1"},
      {"Unique", UniqueValues(), Value::StringList({"a", "b"}), nullptr},
      {"NotUnique", UniqueValues(), Value::StringList({"a", "b", "a"}),
       "element twice, got: \"a\""},
      {"UniqueUnknown", UniqueValues(), Value::List({Value::Unknown(), Value::Unknown()}), nullptr},
      {"NullElement", NoNullElements(), Value::Map({{"k", Value::Null()}}),
       "Attribute a[\"k\"] must not be null"},
      {"EachElement", EachElement(OneOf({"GET"})), Value::StringList({"GET", "get"}),
       "Attribute a[1] must be one of"},
      {"EachKey", EachKey(Matches("[A-Z]+", "be upper-case")), Value::StringMap({{"a", "x"}}),
       "Attribute a[\"a\"] must be upper-case"},
      {"EachUnknown", EachElement(OneOf({"GET"})), Value::List({Value::Unknown(), Value::Null()}),
       nullptr},
      {"DurationOk", Duration(), Value::String("1h30m"), nullptr},
      {"DurationZero", Duration(), Value::String("0s"), "above zero"},
      {"DurationBad", Duration(), Value::String("90"), "not a duration"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const auto found = Check(c.validator, c.value);
    EXPECT_FALSE(c.validator.description.empty());
    if (c.message == nullptr) {
      EXPECT_EQ(found.ToString(), "");
    } else {
      EXPECT_THAT(found.ToString(), HasSubstr(c.message));
      EXPECT_TRUE(found.HasError());
    }
  }
}

TEST(Validators, SensitiveValuesAreNotShown) {
  for (const auto& validator :
       {OneOf({"aaaa"}), Matches("b+", "be b"), JsonText(), LengthAtLeast(50)}) {
    const auto found = Check(validator, Value::String("hunter2"), Value::Object({}), true);
    EXPECT_TRUE(found.HasError());
    EXPECT_THAT(found.ToString(), Not(HasSubstr("hunter2")));
  }
}

enum class Mark { kNull, kSet, kUnknown };

Value Of(Mark mark) {
  if (mark == Mark::kNull) return Value::Null();
  return mark == Mark::kSet ? Value::String("x") : Value::Unknown();
}

struct AcrossCase {
  Mark a, b;
  bool conflicts, exactly, at_least, together;  // an error is expected
};

TEST(Validators, AcrossAttributes) {
  using enum Mark;
  const AcrossCase cases[] = {
      {kNull, kNull, false, true, true, false},
      {kSet, kNull, false, false, false, true},
      {kNull, kSet, false, false, false, false},
      {kSet, kSet, true, true, false, false},
      {kUnknown, kNull, false, false, false, false},
      {kNull, kUnknown, false, false, false, false},
      {kSet, kUnknown, false, false, false, false},
      {kUnknown, kSet, false, false, false, false},
      {kUnknown, kUnknown, false, false, false, false},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(static_cast<int>(c.a) * 10 + static_cast<int>(c.b));
    const Value config = Value::Object({{"a", Of(c.a)}, {"b", Of(c.b)}});
    EXPECT_EQ(Check(ConflictsWith({Path("b")}), Of(c.a), config).HasError(), c.conflicts);
    EXPECT_EQ(Check(ExactlyOneOf({Path("b")}), Of(c.a), config).HasError(), c.exactly);
    EXPECT_EQ(Check(AtLeastOneOf({Path("b")}), Of(c.a), config).HasError(), c.at_least);
    EXPECT_EQ(Check(RequiredTogether({Path("b")}), Of(c.a), config).HasError(), c.together);
  }
  const Value nested = Value::Object({{"a", Of(kSet)}, {"http", Value::Unknown()}});
  EXPECT_FALSE(Check(ConflictsWith({Path("http").Attribute("x")}), Of(kSet), nested).HasError());
  EXPECT_THAT(Check(ExactlyOneOf({Path("b"), Path("c")}), Value::Null(),
                    Value::Object({{"a", Value::Null()}}))
                  .ToString(),
              HasSubstr("Exactly one of a, b and c must be set, none is."));
}

struct DurationCase {
  const char* text;
  int64_t nanos;  // -1: refused
};

TEST(ParseDuration, GoSyntax) {
  for (const auto& c : {DurationCase{"0", 0},
                        DurationCase{"1s", 1000000000},
                        DurationCase{"1h30m", 5400000000000},
                        DurationCase{"1.5s", 1500000000},
                        DurationCase{"300ms", 300000000},
                        DurationCase{"2us", 2000},
                        DurationCase{"2µs", 2000},
                        DurationCase{"7ns", 7},
                        DurationCase{".5s", 500000000},
                        DurationCase{"+1m", 60000000000},
                        DurationCase{"1m1m", 120000000000},
                        DurationCase{"", -1},
                        DurationCase{"1", -1},
                        DurationCase{"s", -1},
                        DurationCase{"1 s", -1},
                        DurationCase{"1d", -1},
                        DurationCase{"1h ", -1},
                        DurationCase{"..s", -1},
                        DurationCase{"1e3s", -1},
                        DurationCase{"9999999999h", -1},
                        DurationCase{"-", -1},
                        DurationCase{"infs", -1}}) {
    SCOPED_TRACE(c.text);
    const auto parsed = ParseDuration(c.text);
    ASSERT_EQ(parsed.has_value(), c.nanos >= 0);
    if (parsed) {
      EXPECT_EQ(parsed->count(), c.nanos);
    }
  }
  EXPECT_EQ(ParseDuration("-1.5h")->count(), -5400000000000);
  EXPECT_FALSE(ParseDuration(std::string(100000, '1') + "s").has_value());
}

TEST(TimeoutOf, FallsBack) {
  using std::chrono::minutes;
  using std::chrono::seconds;
  const auto with = [](Value create) {
    return Value::Object({{"timeouts", Value::Object({{"create", create}})}});
  };
  EXPECT_EQ(TimeoutOf(with(Value::String("90s")), "create", minutes(5)), seconds(90));
  EXPECT_EQ(TimeoutOf(with(Value::Null()), "create", minutes(5)), minutes(5));
  EXPECT_EQ(TimeoutOf(with(Value::String("soon")), "create", minutes(5)), minutes(5));
  EXPECT_EQ(TimeoutOf(Value::Object({{"timeouts", Value::Null()}}), "create", minutes(5)),
            minutes(5));
  EXPECT_EQ(TimeoutOf(Value::Null(), "create", minutes(5)), minutes(5));
}

}  // namespace
}  // namespace sless::framework
