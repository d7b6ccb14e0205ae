#include "provider/framework/model.h"

#include <gmock/gmock.h>

#include "client/base/testing/result_matchers.h"
#include "provider/framework/schema.h"

namespace sless::framework {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using base::IsOkAndHolds;
using cty::Value;
using ::testing::HasSubstr;

struct Http {
  Attr<std::string> path;
  Attr<std::vector<std::string>> methods;
  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("path", self.path);
    visit("methods", self.methods);
  }
  bool operator==(const Http&) const = default;
};

struct Thing {
  std::string name;
  Attr<int64_t> size;
  Attr<bool> on;
  Attr<double> ratio;
  Attr<std::map<std::string, std::string>> environment;
  Attr<Http> http;
  Attr<std::vector<Http>> rules;
  Attr<Value> any;
  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("name", self.name);
    visit("size", self.size);
    visit("on", self.on);
    visit("ratio", self.ratio);
    visit("environment", self.environment);
    visit("http", self.http);
    visit("rules", self.rules);
    visit("any", self.any);
  }
};

std::vector<Attribute> HttpAttributes() {
  return {{"path", String(), {.optional = true}},
          {"methods", SetOf(cty::Type::String()), {.optional = true}}};
}

Schema ThingSchema() {
  Schema schema;
  schema.attributes = {{"name", String(), {.required = true}},
                       {"size", Int64(), {.optional = true}},
                       {"on", Bool(), {.optional = true}},
                       {"ratio", Number(), {.optional = true}},
                       {"environment", MapOf(cty::Type::String()), {.optional = true}},
                       {"http", SingleNested(HttpAttributes()), {.optional = true}},
                       {"rules", ListNested(HttpAttributes()), {.optional = true}},
                       {"any", Dynamic(), {.optional = true}}};
  return schema;
}

Value HttpValue(Value methods) {
  return Value::Object({{"path", Value::String("/")}, {"methods", std::move(methods)}});
}

Value ThingValue() {
  return Value::Object(
      {{"name", Value::String("n")},
       {"size", Value::Unknown()},
       {"on", Value::Bool(true)},
       {"ratio", Value::Number(*cty::Number::Parse("0.1"))},
       {"environment", Value::Map({{"A", Value::String("1")}, {"B", Value::Unknown()}})},
       {"http", HttpValue(Value::StringSet({"GET", "PUT"}))},
       {"rules", Value::List({HttpValue(Value::Null()), HttpValue(Value::Unknown())})},
       {"any", Value::Null()}});
}

TEST(Model, ReadsStates) {
  const auto thing = FromValue<Thing>(ThingValue());
  ASSERT_THAT(thing, IsOk());
  EXPECT_EQ(thing->name, "n");
  EXPECT_TRUE(thing->size.IsUnknown());
  EXPECT_TRUE(thing->on.Get());
  EXPECT_DOUBLE_EQ(thing->ratio.Get(), 0.1);
  EXPECT_TRUE(thing->environment.IsUnknown());  // a part of it is
  EXPECT_EQ(thing->http->path.Get(), "/");
  EXPECT_EQ(thing->http->methods.Get(), (std::vector<std::string>{"GET", "PUT"}));
  ASSERT_EQ(thing->rules->size(), 2u);
  EXPECT_TRUE(thing->rules.Get()[0].methods.IsNull());
  EXPECT_TRUE(thing->rules.Get()[1].methods.IsUnknown());
  EXPECT_TRUE(thing->any.IsNull());
}

TEST(Model, WhatWasNotAssignedIsWrittenAsRead) {
  const auto type = ImpliedType(ThingSchema());
  auto thing = FromValue<Thing>(ThingValue()).value();
  EXPECT_THAT(ToValue(thing, type), IsOkAndHolds(ThingValue()));
  thing.size = 5;
  thing.environment = std::map<std::string, std::string>{{"C", "3"}};
  const auto written = ToValue(thing, type);
  ASSERT_THAT(written, IsOk());
  EXPECT_EQ(*written, ThingValue()
                          .With("size", Value::Int(5))
                          .With("environment", Value::Map({{"C", Value::String("3")}})));
  EXPECT_THAT(cty::Conforms(*written, type), IsOk());
}

TEST(Model, WritesSetsAndNested) {
  Thing thing;
  thing.name = "x";
  Http http;
  http.path = "/a";
  http.methods = std::vector<std::string>{"b", "a", "b"};
  thing.http = http;
  thing.rules = std::vector<Http>{http, http};
  thing.ratio = 0.5;
  const auto type = ImpliedType(ThingSchema());
  const auto value = ToValue(thing, type);
  ASSERT_THAT(value, IsOk());
  EXPECT_THAT(cty::Conforms(*value, type), IsOk());
  EXPECT_EQ(value->Get("http").Get("methods"), Value::StringSet({"a", "b"}));
  EXPECT_TRUE(value->Get("size").IsNull());
  EXPECT_EQ(value->Get("rules").size(), 2u);
}

TEST(Model, AccessToWhatIsNotKnownIsLoud) {
  Attr<int64_t> null;
  EXPECT_THROW((void)null.Get(), NotKnown);
  EXPECT_EQ(null.GetOr(7), 7);
  EXPECT_EQ(null.IfKnown(), nullptr);
  const auto unknown = Attr<int64_t>::Unknown();
  EXPECT_THROW((void)unknown.Get(), NotKnown);
  EXPECT_THROW((void)unknown.GetOr(7), NotKnown);
  EXPECT_EQ(Attr<std::string>("x"), Attr<std::string>(std::string("x")));
  EXPECT_FALSE(null == unknown);
}

TEST(Model, MisfitsHaveThePath) {
  EXPECT_THAT(FromValue<Thing>(ThingValue().With("name", Value::Null())),
              IsError(Code::kInternal, HasSubstr("name: wanted a string, found null")));
  EXPECT_THAT(
      FromValue<Thing>(ThingValue().With("size", Value::Number(*cty::Number::Parse("1.5")))),
      IsError(Code::kInternal, HasSubstr("size: wanted a whole number")));
  EXPECT_THAT(
      FromValue<Thing>(
          ThingValue().With("rules", Value::List({HttpValue(Value::List({Value::Null()}))}))),
      IsError(Code::kInternal, HasSubstr("rules[0].methods[0]: wanted a string, found null")));
  EXPECT_THAT(
      FromValue<Thing>(ThingValue().With("environment", Value::Map({{"A", Value::Null()}}))),
      IsError(Code::kInternal, HasSubstr("environment[\"A\"]: wanted a string, found null")));
  EXPECT_THAT(FromValue<Thing>(Value::Object({})),
              IsError(Code::kInternal, HasSubstr("lists \"name\"")));
  EXPECT_THAT(FromValue<Thing>(Value::Null()), IsError(Code::kInternal, HasSubstr("found null")));
  Schema more = ThingSchema();
  more.attributes.push_back({"extra", String(), {.optional = true}});
  EXPECT_THAT(ToValue(Thing{}, ImpliedType(more)),
              IsError(Code::kInternal, HasSubstr("schema has \"extra\"")));
  Schema less = ThingSchema();
  less.attributes.pop_back();
  EXPECT_THAT(ToValue(Thing{}, ImpliedType(less)),
              IsError(Code::kInternal, HasSubstr("lists \"any\"")));
}

}  // namespace
}  // namespace sless::framework
