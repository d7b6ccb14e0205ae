#include "provider/cty/msgpack.h"

#include <gmock/gmock.h>

#include "client/base/testing/result_matchers.h"
#include "provider/cty/testing/random_value.h"

namespace sless::cty {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using ::testing::HasSubstr;

std::string Bytes(std::string_view hex) {
  std::string out;
  int high = -1;
  for (const char c : hex) {
    if (c == ' ') continue;
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    if (high < 0) {
      high = digit;
    } else {
      out += static_cast<char>(high * 16 + digit);
      high = -1;
    }
  }
  return out;
}

Number Num(std::string_view text) { return *Number::Parse(text); }

const Type kThing =
    Type::Object({{"id", Type::String()}, {"name", Type::String()}, {"num", Type::Number()}});

Value Thing(Value id, std::string_view name) {
  return Value::Object(
      {{"id", std::move(id)}, {"name", Value::String(name)}, {"num", Value::Number(Num("0.1"))}});
}

// What hosts write, and what must be read as the same value. `hex` is also what we write unless
// `read_only`.
struct Vector {
  const char* name;
  Type type;
  Value value;
  const char* hex;
  bool read_only = false;
};

std::vector<Vector> Vectors() {
  const Type s = Type::String();
  const Type n = Type::Number();
  return {
      {"Null", s, Value::Null(), "c0"},
      {"Unknown", s, Value::Unknown(), "d4 00 00"},
      {"UnknownNotNull", s, Value::Unknown(), "c7 03 0c 81 01 c2", true},
      {"UnknownListOfOneToThree", Type::List(s), Value::Unknown(), "c7 07 0c 83 01 c2 05 01 06 03",
       true},
      {"UnknownPrefix", s, Value::Unknown(), "c7 07 0c 82 01 c2 02 a2 61 62", true},
      {"UnknownNotNegative", n, Value::Unknown(), "c7 07 0c 82 01 c2 03 92 00 c3", true},
      {"UnknownAsFixext2", s, Value::Unknown(), "d5 0c 81 01", true},
      {"UnknownOfLengthZero", s, Value::Unknown(), "c7 00 05", true},
      {"True", Type::Bool(), Value::Bool(true), "c3"},
      {"False", Type::Bool(), Value::Bool(false), "c2"},
      {"ThingUnknownId", kThing, Thing(Value::Unknown(), "n1"),
       "83 a2 69 64 d4 00 00 a4 6e 61 6d 65 a2 6e 31 a3 6e 75 6d a3 30 2e 31"},
      {"ThingNullId", kThing, Thing(Value::Null(), "n1"),
       "83 a2 69 64 c0 a4 6e 61 6d 65 a2 6e 31 a3 6e 75 6d a3 30 2e 31"},
      {"ThingKnownId", kThing, Thing(Value::String("xy"), "n1"),
       "83 a2 69 64 a2 78 79 a4 6e 61 6d 65 a2 6e 31 a3 6e 75 6d a3 30 2e 31"},
      {"ThingOtherOrder", kThing, Thing(Value::Null(), "n1"),
       "83 a4 6e 61 6d 65 a2 6e 31 a3 6e 75 6d a3 30 2e 31 a2 69 64 c0", true},
      {"EmptyObject", Type::Object({}), Value::Object({}), "80"},
      {"ListOfStrings", Type::List(s), Value::StringList({"a", "b"}), "92 a1 61 a1 62"},
      {"EmptyList", Type::List(s), Value::List({}), "90"},
      {"SetInAnyOrder", Type::Set(s), Value::StringSet({"a", "b"}), "92 a1 62 a1 61", true},
      {"SetOfEqualElements", Type::Set(s), Value::StringSet({"a"}), "92 a1 61 a1 61", true},
      {"Map", Type::Map(n), Value::Map({{"k", Value::Int(1)}}), "81 a1 6b 01"},
      {"Tuple", Type::Tuple({s, n}), Value::Tuple({Value::String("a"), Value::Int(5)}),
       "92 a1 61 05"},
      {"DynamicString", Type::Dynamic(), Value::String("x"),
       "92 c4 08 22 73 74 72 69 6e 67 22 a1 78"},
      {"DynamicTypeAsString", Type::Dynamic(), Value::String("x"),
       "92 a8 22 73 74 72 69 6e 67 22 a1 78", true},
      {"DynamicNull", Type::Dynamic(), Value::Null(), "c0"},
      {"DynamicUnknown", Type::Dynamic(), Value::Unknown(), "d4 00 00"},
      {"DynamicTypedNull", Type::Dynamic(), Value::Null().WithDynamicType(s),
       "92 c4 08 22 73 74 72 69 6e 67 22 c0"},
      {"DynamicTypedUnknown", Type::Dynamic(), Value::Unknown().WithDynamicType(s),
       "92 c4 08 22 73 74 72 69 6e 67 22 d4 00 00"},
      {"DynamicInObject", Type::Object({{"d", Type::Dynamic()}}),
       Value::Object({{"d", Value::Int(5)}}), "81 a1 64 92 c4 08 22 6e 75 6d 62 65 72 22 05"},
      {"Five", n, Value::Int(5), "05"},
      {"MinusOne", n, Value::Int(-1), "ff"},
      {"MinusThirtyThree", n, Value::Int(-33), "d0 df"},
      {"ThreeHundred", n, Value::Int(300), "cd 01 2c"},
      {"ThreeHundredSigned", n, Value::Int(300), "d1 01 2c", true},
      {"Int64Max", n, Value::Int(INT64_MAX), "cf 7f ff ff ff ff ff ff ff"},
      {"Int64Min", n, Value::Int(INT64_MIN), "d3 80 00 00 00 00 00 00 00"},
      {"Half", n, Value::Number(Num("0.5")), "cb 3f e0 00 00 00 00 00 00"},
      {"HalfAsFloat32", n, Value::Number(Num("0.5")), "ca 3f 00 00 00", true},
      {"Tenth", n, Value::Number(Num("0.1")), "a3 30 2e 31"},
      {"TwoTo64", n, Value::Number(Num("18446744073709551616")),
       "b4 31 38 34 34 36 37 34 34 30 37 33 37 30 39 35 35 31 36 31 36"},
      {"Uint64Max", n, Value::Number(Num("18446744073709551615")), "cf ff ff ff ff ff ff ff ff",
       true},
      {"TwoTo63AsDouble", n, Value::Number(Num("9223372036854775808")),
       "cb 43 e0 00 00 00 00 00 00", true},
      {"WholeDouble", n, Value::Int(5), "cb 40 14 00 00 00 00 00 00", true},
      {"NumberWithExponent", n, Value::Int(100), "a3 31 65 32", true},
      {"StringAsBinary", s, Value::String("ab"), "c4 02 61 62", true},
      {"EmptyTextIsNull", s, Value::Null(), "", true},
  };
}

TEST(Msgpack, ReadsAndWritesTheVectors) {
  for (const auto& v : Vectors()) {
    SCOPED_TRACE(v.name);
    const auto read = DecodeMsgpack(Bytes(v.hex), v.type);
    ASSERT_THAT(read, IsOk());
    EXPECT_EQ(read->ToString(), v.value.ToString());
    EXPECT_EQ(*read, v.value);
    EXPECT_EQ(read->dynamic_type() != nullptr,
              v.type.IsDynamic() && std::string_view(v.hex).starts_with("92"));
    if (v.read_only) continue;
    const auto written = EncodeMsgpack(v.value, v.type);
    ASSERT_THAT(written, IsOk());
    EXPECT_EQ(*written, Bytes(v.hex));
  }
}

struct Bad {
  const char* name;
  Type type;
  std::string hex;
  const char* message;
};

TEST(Msgpack, RefusesBadInput) {
  const Type list = Type::List(Type::String());
  const std::vector<Bad> cases = {
      {"TrailingByte", Type::String(), "a1 61 00", "1 bytes after the value"},
      {"Truncated", Type::String(), "a5 61", "ends in the middle"},
      {"TruncatedHeader", Type::String(), "da 01", "ends in the middle"},
      {"WrongKind", Type::String(), "05", "wanted string, found a number"},
      {"MissingAttribute", kThing, "81 a2 69 64 c0", "attribute \"name\" is missing"},
      {"ExtraAttribute", Type::Object({}), "81 a1 78 c0", "there is no attribute \"x\""},
      {"AttributeTwice", Type::Object({{"x", Type::Bool()}, {"y", Type::Bool()}}),
       "82 a1 78 c0 a1 78 c0", "twice"},
      {"TupleLength", Type::Tuple({Type::Bool()}), "92 c2 c2", "wanted 1 elements, found 2"},
      {"HugeArray", list, "dd ff ff ff ff", "ends in the middle"},
      {"HugeMap", Type::Map(Type::String()), "df ff ff ff ff", "ends in the middle"},
      {"HugeString", Type::String(), "db ff ff ff ff 61", "ends in the middle"},
      {"NotUtf8", Type::String(), "a2 c3 28", "not UTF-8"},
      {"Nan", Type::Number(), "cb 7f f8 00 00 00 00 00 00", "finite"},
      {"Infinity", Type::Number(), "cb 7f f0 00 00 00 00 00 00", "finite"},
      {"NotANumber", Type::Number(), "a3 61 62 63", "not a decimal number"},
      {"ForeignExtension", Type::String(), "d5 05 00 00", "extension type 5"},
      {"BareDynamic", Type::Dynamic(), "a1 78", "[type, value]"},
      {"DynamicBadType", Type::Dynamic(), "92 c4 01 78 c0", "before byte"},
      {"NeverUsedByte", Type::String(), "c1", "0xc1"},
      {"PathInMessage", Type::Object({{"a", Type::Map(Type::List(Type::Bool()))}}),
       "81 a1 61 81 a1 6b 91 05", "a[\"k\"][0]: wanted bool"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    EXPECT_THAT(DecodeMsgpack(Bytes(c.hex), c.type),
                IsError(Code::kInvalidArgument, HasSubstr(c.message)));
  }
}

TEST(Msgpack, LimitsTheDepth) {
  // A dynamic value in a dynamic value, and so on.
  std::string bytes;
  for (int i = 0; i < 10000; ++i) bytes += Bytes("92 c4 09") + "\"dynamic\"";
  EXPECT_THAT(DecodeMsgpack(bytes, Type::Dynamic()),
              IsError(Code::kInvalidArgument, HasSubstr("deeper than")));
  std::string type = "\"bool\"";
  for (int i = 0; i < 90; ++i) type = "[\"list\"," + type + "]";
  EXPECT_THAT(Type::FromJson(type), IsError(Code::kInvalidArgument, HasSubstr("deeper than")));
  EXPECT_THAT(Type::FromJson(std::string(100000, '[')),
              IsError(Code::kInvalidArgument, HasSubstr("")));
}

TEST(Msgpack, EncodeRefusesWhatDoesNotConform) {
  EXPECT_THAT(EncodeMsgpack(Value::Int(1), Type::String()),
              IsError(Code::kInternal, HasSubstr("wanted string")));
  EXPECT_THAT(EncodeMsgpack(Value::Object({}), kThing),
              IsError(Code::kInternal, HasSubstr("\"id\" is missing")));
  EXPECT_THAT(EncodeMsgpack(Value::StringList({"a"}), Type::Set(Type::String())),
              IsError(Code::kInternal, HasSubstr("found a list")));
}

TEST(Msgpack, RoundTripsRandomValues) {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    SCOPED_TRACE(seed);
    testing::Random random(seed);
    const Type type = testing::RandomType(random, 4);
    const Value value = testing::RandomValue(random, type);
    const auto bytes = EncodeMsgpack(value, type);
    ASSERT_THAT(bytes, IsOk()) << type.ToJson() << " " << value.ToString();
    const auto back = DecodeMsgpack(*bytes, type);
    ASSERT_THAT(back, IsOk());
    ASSERT_EQ(*back, value) << value.ToString() << "\n" << back->ToString();
    ASSERT_THAT(EncodeMsgpack(*back, type), base::IsOkAndHolds(*bytes));
  }
}

TEST(Msgpack, SurvivesMutatedBytes) {
  int refused = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    testing::Random random(seed);
    const Type type = testing::RandomType(random, 3);
    auto bytes = EncodeMsgpack(testing::RandomValue(random, type), type).value();
    for (uint64_t i = 1 + random.Below(3); i > 0 && !bytes.empty(); --i) {
      const size_t at = random.Below(bytes.size());
      switch (random.Below(3)) {
        case 0:
          bytes[at] = static_cast<char>(random.Below(256));
          break;
        case 1:
          bytes.resize(at);
          break;
        default:
          bytes.insert(at, 1, static_cast<char>(random.Below(256)));
      }
    }
    const auto value = DecodeMsgpack(bytes, type);
    refused += value ? 0 : 1;
    if (value) {
      ASSERT_THAT(EncodeMsgpack(*value, type), IsOk()) << seed;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace sless::cty
