#include <gtest/gtest.h>

#include "client/api/error_body.h"
#include "client/api/fields.h"
#include "client/api/function.h"
#include "client/api/job.h"
#include "client/api/trigger.h"
#include "client/base/testing/result_matchers.h"

namespace sless::api {
namespace {

using base::Code;

TEST(Fields, RoundTrip) {
  Function function;
  function.metadata.ns = "default";
  function.metadata.annotations["a/b"] = "c";
  function.spec.runtime = "python3.11";
  function.spec.environment["KEY"] = "value";
  function.spec.replicas = 0;
  function.status.serving = function.spec;
  function.status.failure = Failure{"BuildFailed", "no", "a.py", 3, {"x"}};
  const auto text = ToJsonText(function);
  const auto back = FromJsonText<Function>(text, Unknown::kError);
  ASSERT_THAT(back, base::IsOk());
  EXPECT_EQ(back->spec, function.spec);
  EXPECT_EQ(back->status, function.status);
  EXPECT_EQ(back->metadata, function.metadata);
}

TEST(Fields, ErrorsHaveThePointer) {
  const auto field = [](const char* text) {
    const auto result = FromJsonText<Function>(text, Unknown::kError);
    return result ? std::string("ok") : result.error().field;
  };
  EXPECT_EQ(field(R"({"spec":{"memoryMb":"x"}})"), "/spec/memoryMb");
  EXPECT_EQ(field(R"({"spec":{"memoryMb":1.5}})"), "/spec/memoryMb");
  EXPECT_EQ(field(R"({"spec":{"memoryMb":18446744073709551615}})"), "/spec/memoryMb");
  EXPECT_EQ(field(R"({"spec":{"memoryMb":1e300}})"), "/spec/memoryMb");
  EXPECT_EQ(field(R"({"spec":{"memory":1}})"), "/spec/memory");
  EXPECT_EQ(field(R"({"spec":{"environment":{"a/b":1}}})"), "/spec/environment/a~1b");
  EXPECT_EQ(field(R"({"spec":{"source":[]}})"), "/spec/source");
  EXPECT_THAT(FromJsonText<Function>(R"({"new":1})", Unknown::kIgnore), base::IsOk());
}

TEST(Fields, ANumberIsWholeHoweverItIsWritten) {
  const auto memory = [](const char* text) {
    const auto result = FromJsonText<Function>(text, Unknown::kError);
    return result ? result->spec.memory_mb : -1;
  };
  EXPECT_EQ(memory(R"({"spec":{"memoryMb":512.0}})"), 512);
  EXPECT_EQ(memory(R"({"spec":{"memoryMb":1e3}})"), 1000);
}

TEST(Fields, ErrorsNeverRepeatAMegabyte) {
  const std::string name(1'000'000, 'x');
  for (const auto& text :
       {"{\"spec\":{\"" + name + "\":1}}", "{\"spec\":{\"environment\":{\"" + name + "\":1}}}"}) {
    const auto result = FromJsonText<Function>(text, Unknown::kError);
    ASSERT_FALSE(result.has_value());
    EXPECT_LT(result.error().message.size() + result.error().field.size(), 2000u);
  }
}

TEST(ErrorBody, EveryCodeRoundTrips) {
  for (int i = 0; i <= static_cast<int>(Code::kInternal); ++i) {
    base::Error error{static_cast<Code>(i), "text", "/spec/x", "Why", {"f.py", 3, {"line"}}};
    const auto back = ErrorFromBody(HttpStatus(error.code), ErrorBody(error));
    EXPECT_EQ(back.code, error.code);
    EXPECT_EQ(back.message, error.message);
    EXPECT_EQ(back.field, error.field);
    EXPECT_EQ(back.reason, error.reason);
    EXPECT_EQ(back.source.line, 3);
    EXPECT_EQ(back.source.log_tail, error.source.log_tail);
    EXPECT_EQ(ErrorFromBody(HttpStatus(error.code), "<html>").code, error.code);
  }
}

TEST(ErrorBody, AReasonMayHaveAStatusOfItsOwn) {
  const auto status = [](Code code, std::string reason) {
    return HttpStatus(base::Error{code, "text", "", std::move(reason), {}});
  };
  EXPECT_EQ(status(Code::kAborted, ""), 412);
  EXPECT_EQ(status(Code::kAborted, "PreconditionFailed"), 412);
  EXPECT_EQ(status(Code::kAborted, "Conflict"), 409);
  EXPECT_EQ(status(Code::kInvalidArgument, "MethodNotAllowed"), 405);
  EXPECT_EQ(status(Code::kInternal, "ReplicaDied"), 502);
  EXPECT_EQ(ErrorFromBody(405, "<html>").code, Code::kInvalidArgument);
  EXPECT_EQ(ErrorFromBody(502, "<html>").code, Code::kUnavailable);
}

TEST(ErrorBody, AnErrorWithoutMessageShowsItsBody) {
  const auto error = ErrorFromBody(404, R"({"code":"NotFound"})");
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message, testing::HasSubstr("HTTP status 404"));
}

}  // namespace
}  // namespace sless::api
