#include "server/domain/validate.h"

#include <gmock/gmock.h>

#include <functional>

#include "client/base/testing/result_matchers.h"

namespace sless::domain {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using testing::HasSubstr;
using testing::Not;

const std::string kHash = "sha256:" + std::string(64, 'a');

const std::string kLongLabel = "/spec/labels/" + std::string(129, 'a');

api::FunctionSpec GoodFunction() {
  api::FunctionSpec spec;
  spec.runtime = "python3.11";
  spec.source = {"dir", "./src", kHash, ""};
  spec.environment = {{"GREETING", "hello"}, {"_x1", ""}};
  spec.labels = {{"team.example.com/name", "a b c"}};
  return spec;
}

api::TriggerSpec GoodHttp() {
  api::TriggerSpec spec;
  spec.function = "hello";
  spec.type = "http";
  spec.http = api::HttpSpec{"token", {"GET", "POST"}, "/v1/orders"};
  return spec;
}

api::TriggerSpec GoodCron() {
  api::TriggerSpec spec;
  spec.function = "hello";
  spec.type = "cron";
  spec.cron = api::CronSpec{"*/5 * * * *", "Europe/Berlin", R"({"a":1})", "skip", "once"};
  return spec;
}

api::JobSpec GoodJob() {
  api::JobSpec spec;
  spec.function = "hello";
  spec.event_json = R"({"a":[1,2]})";
  spec.run_id = 1;
  return spec;
}

// One change to a good spec, and what comes out: field and text, or "" for fine.
template <class Spec>
struct Case {
  const char* name;
  std::function<void(Spec&)> change;
  const char* field;
  const char* text;
};

template <class Spec>
void Expect(const base::Status& status, const Case<Spec>& c) {
  if (!*c.field) {
    EXPECT_THAT(status, IsOk());
    return;
  }
  ASSERT_THAT(status, IsError(Code::kInvalidArgument, HasSubstr(c.text)));
  EXPECT_EQ(status.error().field, c.field);
  EXPECT_THAT(status.error().message, Not(HasSubstr("hunter2")));
}

using F = api::FunctionSpec;
class ValidateFunctionTest : public testing::TestWithParam<Case<F>> {};
TEST_P(ValidateFunctionTest, Rule) {
  auto spec = GoodFunction();
  GetParam().change(spec);
  Expect(ValidateFunction(spec), GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Cases, ValidateFunctionTest,
    testing::Values(
        Case<F>{"Good", [](F&) {}, "", ""}, Case<F>{"Runtime", [](F& s) { s.runtime = "python3.1"; }, "/spec/runtime", "did you mean \"python3.11\"?"},
        Case<F>{"RuntimeNode", [](F& s) { s.runtime = "node20"; }, "/spec/runtime", "did you mean \"nodejs20\"?"},
        Case<F>{"RuntimeFar", [](F& s) { s.runtime = "cobol"; }, "/spec/runtime", "want one of \"python3.11\", \"nodejs20\", got \"cobol\""},
        Case<F>{"RuntimeNone", [](F& s) { s.runtime = ""; }, "/spec/runtime", "want one of"},
        Case<F>{"EntrypointFolder", [](F& s) { s.entrypoint = "src/app.main"; }, "", ""},
        Case<F>{"EntrypointDollar", [](F& s) { s.entrypoint = "a-b.$x_1"; }, "", ""},
        Case<F>{"EntrypointNoDot", [](F& s) { s.entrypoint = "handler"; }, "/spec/entrypoint", "no '.'"},
        Case<F>{"EntrypointEnding", [](F& s) { s.entrypoint = "handler.py"; }, "/spec/entrypoint", "function is missing"},
        Case<F>{"EntrypointEmpty", [](F& s) { s.entrypoint = ""; }, "/spec/entrypoint", "no '.'"},
        Case<F>{"EntrypointDots", [](F& s) { s.entrypoint = "a.b.c"; }, "/spec/entrypoint", "divided by '/'"},
        Case<F>{"EntrypointUp", [](F& s) { s.entrypoint = "../a.b"; }, "/spec/entrypoint", "'.'"},
        Case<F>{"EntrypointAbsolute", [](F& s) { s.entrypoint = "/a.b"; }, "/spec/entrypoint", "empty parts"},
        Case<F>{"EntrypointDigit", [](F& s) { s.entrypoint = "a.1b"; }, "/spec/entrypoint", "name of a function"},
        Case<F>{"EntrypointShell", [](F& s) { s.entrypoint = "a;rm.b"; }, "/spec/entrypoint", "letters, digits"},
        Case<F>{"EntrypointLong", [](F& s) { s.entrypoint = std::string(300, 'a') + ".b"; }, "/spec/entrypoint", "256"},
        Case<F>{"SourceType", [](F& s) { s.source.type = "git"; }, "/spec/source/type", "\"dir\", \"zip\", \"code\""},
        Case<F>{"SourceHashNone", [](F& s) { s.source.hash = ""; }, "/spec/source/hash", "64 hex digits"},
        Case<F>{"SourceHashUpper", [](F& s) { s.source.hash = "sha256:" + std::string(64, 'A'); }, "/spec/source/hash", "64 hex digits"},
        Case<F>{"SourceHashUp", [](F& s) { s.source.hash = "sha256:../" + std::string(61, 'a'); }, "/spec/source/hash", "64 hex digits"},
        Case<F>{"SourceCode", [](F& s) { s.source = {"code", "", kHash, "x = 1"}; }, "", ""},
        Case<F>{"SourceCodeEmpty", [](F& s) { s.source.type = "code"; }, "/spec/source/code", "needs the text"},
        Case<F>{"SourceCodeNotWanted", [](F& s) { s.source.code = "x"; }, "/spec/source/code", "the type is \"dir\""},
        Case<F>{"SourceCodeLarge", [](F& s) { s.source = {"code", "", kHash, std::string(600 * 1024, 'x')}; }, "/spec/source/code", "at most 524288"},
        Case<F>{"SourceCodeBytes", [](F& s) { s.source = {"code", "", kHash, "\xff"}; }, "/spec/source/code", "UTF-8"},
        Case<F>{"SourcePathLong", [](F& s) { s.source.path = std::string(5000, 'x'); }, "/spec/source/path", "4096"},
        Case<F>{"CodeHashLong", [](F& s) { s.code_hash = std::string(1025, 'x'); }, "/spec/codeHash", "1024"},
        Case<F>{"EnvName", [](F& s) { s.environment["1A"] = "hunter2"; }, "/spec/environment/1A", "does not begin with a digit"},
        Case<F>{"EnvSlash", [](F& s) { s.environment["A/~B"] = "hunter2"; }, "/spec/environment/A~1~0B", "letters"},
        Case<F>{"EnvEmpty", [](F& s) { s.environment[""] = "hunter2"; }, "/spec/environment/", "needs a name"},
        Case<F>{"EnvReserved", [](F& s) { s.environment["SLESS_TOKEN"] = "hunter2"; }, "/spec/environment/SLESS_TOKEN", "set by sless itself"},
        Case<F>{"EnvNul", [](F& s) { s.environment["A"] = std::string("hunter2\0x", 9); }, "/spec/environment/A", "NUL"},
        Case<F>{"EnvBytes", [](F& s) { s.environment["A"] = "hunter2\xff"; }, "/spec/environment/A", "UTF-8"},
        Case<F>{"EnvNameBytes", [](F& s) { s.environment["A\xff"] = "hunter2"; }, "/spec/environment", "letters"},
        Case<F>{"EnvLarge", [](F& s) { s.environment["A"] = std::string(128 * 1024, 'x'); }, "/spec/environment", "at most 131072 bytes"},
        Case<F>{"EnvFits", [](F& s) { s.environment = {{"A", std::string(128 * 1024 - 3, 'x')}}; }, "", ""},
        Case<F>{"EnvMany",
                [](F& s) {
                  for (int i = 0; i < 1001; ++i) s.environment["A" + std::to_string(i)] = "";
                },
                "/spec/environment", "at most 1000"},
        Case<F>{"LabelMany",
                [](F& s) {
                  for (int i = 0; i < 65; ++i) s.labels["l" + std::to_string(i)] = "";
                },
                "/spec/labels", "at most 64 labels, got 66"},
        Case<F>{"LabelKey", [](F& s) { s.labels["a b"] = ""; }, "/spec/labels/a b", "letters, digits"},
        Case<F>{"LabelKeyLong", [](F& s) { s.labels[std::string(129, 'a')] = ""; }, kLongLabel.c_str(), "128"},
        Case<F>{"LabelValueLong", [](F& s) { s.labels["a"] = std::string(257, 'x'); }, "/spec/labels/a", "at most 256"},
        Case<F>{"MemoryLow", [](F& s) { s.memory_mb = 31; }, "/spec/memoryMb", "from 32 to 32768, got 31"},
        Case<F>{"MemoryHigh", [](F& s) { s.memory_mb = INT64_MAX; }, "/spec/memoryMb", "from 32 to 32768"},
        Case<F>{"Timeout", [](F& s) { s.timeout_sec = 0; }, "/spec/timeoutSec", "from 1 to 3600, got 0"},
        Case<F>{"Concurrency", [](F& s) { s.concurrency = -1; }, "/spec/concurrency", "got -1"},
        Case<F>{"Replicas", [](F& s) { s.replicas = 101; }, "/spec/replicas", "from 0 to 100"},
        Case<F>{"ReplicasOff", [](F& s) { s.replicas = 0; }, "", ""},
        Case<F>{"MinAboveMax", [](F& s) { s.min_replicas = 6; }, "/spec/minReplicas", "at most maxReplicas, which is 5; got 6"},
        Case<F>{"MaxZero", [](F& s) { s.max_replicas = 0; }, "/spec/maxReplicas", "from 1 to 100"},
        Case<F>{"Idle", [](F& s) { s.idle_timeout_sec = 86401; }, "/spec/idleTimeoutSec", "86400"},
        Case<F>{"Build", [](F& s) { s.build_timeout_sec = 0; }, "/spec/buildTimeoutSec", "3600"}),
    [](const auto& info) { return std::string(info.param.name); });

using T = api::TriggerSpec;
class ValidateHttpTest : public testing::TestWithParam<Case<T>> {};
TEST_P(ValidateHttpTest, Rule) {
  auto spec = GoodHttp();
  GetParam().change(spec);
  Expect(ValidateTrigger(spec), GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Cases, ValidateHttpTest,
    testing::Values(
        Case<T>{"Good", [](T&) {}, "", ""},
        Case<T>{"Root", [](T& s) { s.http = api::HttpSpec{}; }, "", ""},
        Case<T>{"TypeNone", [](T& s) { s.type = ""; }, "/spec/type",
                "want one of \"http\", \"cron\""},
        Case<T>{"TypeTypo", [](T& s) { s.type = "htp"; }, "/spec/type", "did you mean \"http\"?"},
        Case<T>{"NoHttp", [](T& s) { s.http.reset(); }, "/spec/http", "needs its settings"},
        Case<T>{"CronToo", [](T& s) { s.cron = GoodCron().cron; }, "/spec/cron",
                "has no cron settings"},
        Case<T>{"CronType", [](T& s) { s.type = "cron"; }, "/spec/cron", "needs its settings"},
        Case<T>{"Function", [](T& s) { s.function = "Hello"; }, "/spec/function", "DNS label"},
        Case<T>{"FunctionNone", [](T& s) { s.function = ""; }, "/spec/function", "DNS label"},
        Case<T>{"Auth", [](T& s) { s.http->auth = "basic"; }, "/spec/http/auth",
                "\"none\", \"token\""},
        Case<T>{"MethodLower",
                [](T& s) {
                  s.http->methods = {"GET", "post"};
                },
                "/spec/http/methods/1", "did you mean \"POST\"?"},
        Case<T>{"MethodUnknown", [](T& s) { s.http->methods = {"BREW!!!!"}; },
                "/spec/http/methods/0", "want one of GET"},
        Case<T>{"MethodConnect", [](T& s) { s.http->methods = {"CONNECT"}; },
                "/spec/http/methods/0", "want one of"},
        Case<T>{"MethodTwice",
                [](T& s) {
                  s.http->methods = {"GET", "PUT", "GET"};
                },
                "/spec/http/methods/2", "listed twice"},
        Case<T>{"PathEmpty", [](T& s) { s.http->path = ""; }, "/spec/http/path",
                "must begin with \"/\""},
        Case<T>{"PathRelative", [](T& s) { s.http->path = "a"; }, "/spec/http/path",
                "must begin with \"/\""},
        Case<T>{"PathDouble", [](T& s) { s.http->path = "/a//b"; }, "/spec/http/path", "\"//\""},
        Case<T>{"PathDoubleOnly", [](T& s) { s.http->path = "//"; }, "/spec/http/path", "\"/\""},
        Case<T>{"PathEnd", [](T& s) { s.http->path = "/a/"; }, "/spec/http/path",
                "must not end with \"/\""},
        Case<T>{"PathUp", [](T& s) { s.http->path = "/a/../b"; }, "/spec/http/path", "\"..\""},
        Case<T>{"PathDot", [](T& s) { s.http->path = "/."; }, "/spec/http/path", "\".\""},
        Case<T>{"PathDotsInName", [](T& s) { s.http->path = "/a..b/.well-known"; }, "", ""},
        Case<T>{"PathPercent", [](T& s) { s.http->path = "/a%2e"; }, "/spec/http/path", "percent"},
        Case<T>{"PathQuery", [](T& s) { s.http->path = "/a?b"; }, "/spec/http/path", "query"},
        Case<T>{"PathBlank", [](T& s) { s.http->path = "/a b"; }, "/spec/http/path", "unencoded"},
        Case<T>{"PathBackslash", [](T& s) { s.http->path = "/a\\b"; }, "/spec/http/path",
                "unencoded"},
        Case<T>{"PathNul", [](T& s) { s.http->path = std::string("/a\0b", 4); }, "/spec/http/path",
                "NUL"},
        Case<T>{"PathLong", [](T& s) { s.http->path = "/" + std::string(512, 'a'); },
                "/spec/http/path", "at most 512"}),
    [](const auto& info) { return std::string(info.param.name); });

class ValidateCronTest : public testing::TestWithParam<Case<T>> {};
TEST_P(ValidateCronTest, Rule) {
  auto spec = GoodCron();
  GetParam().change(spec);
  Expect(ValidateTrigger(spec), GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Cases, ValidateCronTest,
    testing::Values(Case<T>{"Good", [](T&) {}, "", ""},
                    Case<T>{"NoPayload", [](T& s) { s.cron->payload = ""; }, "", ""},
                    Case<T>{"Schedule", [](T& s) { s.cron->schedule = "61 * * * *"; },
                            "/spec/cron/schedule", "\"minute\""},
                    Case<T>{"ScheduleNone", [](T& s) { s.cron->schedule = ""; },
                            "/spec/cron/schedule", "5 fields"},
                    Case<T>{"Zone", [](T& s) { s.cron->timezone = "Europe/Berln"; },
                            "/spec/cron/timezone", "did you mean"},
                    Case<T>{"Payload", [](T& s) { s.cron->payload = "{"; }, "/spec/cron/payload",
                            "not valid JSON"},
                    Case<T>{
                        "PayloadLarge",
                        [](T& s) { s.cron->payload = '"' + std::string(256 * 1024, 'x') + '"'; },
                        "/spec/cron/payload", "262144"},
                    Case<T>{"Overlap", [](T& s) { s.cron->overlap = "alow"; }, "/spec/cron/overlap",
                            "did you mean \"allow\"?"},
                    Case<T>{"Misfire", [](T& s) { s.cron->misfire = "twice"; },
                            "/spec/cron/misfire", "\"skip\", \"once\", \"all\""},
                    Case<T>{"HttpToo", [](T& s) { s.http = api::HttpSpec{}; }, "/spec/http",
                            "has no http settings"}),
    [](const auto& info) { return std::string(info.param.name); });

using J = api::JobSpec;
class ValidateJobTest : public testing::TestWithParam<Case<J>> {};
TEST_P(ValidateJobTest, Rule) {
  auto spec = GoodJob();
  GetParam().change(spec);
  Expect(ValidateJob(spec), GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Cases, ValidateJobTest,
    testing::Values(
        Case<J>{"Good", [](J&) {}, "", ""},
        Case<J>{"Scalar", [](J& s) { s.event_json = "1"; }, "", ""},
        Case<J>{"Function", [](J& s) { s.function = "a/b"; }, "/spec/function", "DNS label"},
        Case<J>{"Event", [](J& s) { s.event_json = "{\"a\":}"; }, "/spec/eventJson",
                "line 1, column"},
        Case<J>{"EventNone", [](J& s) { s.event_json = ""; }, "/spec/eventJson", "empty"},
        Case<J>{"EventDeep", [](J& s) { s.event_json = std::string(5000, '['); }, "/spec/eventJson",
                "nested"},
        Case<J>{"RunId", [](J& s) { s.run_id = -1; }, "/spec/runId", "at least 0, got -1"},
        Case<J>{"Wait", [](J& s) { s.wait_timeout_sec = 0; }, "/spec/waitTimeoutSec", "86400"},
        Case<J>{"Retries", [](J& s) { s.max_retries = 11; }, "/spec/maxRetries", "from 0 to 10"}),
    [](const auto& info) { return std::string(info.param.name); });

using M = api::Metadata;
class ValidateMetadataTest : public testing::TestWithParam<Case<M>> {};
TEST_P(ValidateMetadataTest, Rule) {
  M metadata;
  metadata.ns = "default";
  metadata.name = "hello";
  GetParam().change(metadata);
  Expect(ValidateMetadata(metadata), GetParam());
}
INSTANTIATE_TEST_SUITE_P(
    Cases, ValidateMetadataTest,
    testing::Values(
        Case<M>{"Good", [](M& m) { m.annotations[std::string(api::kCreatingAnnotation)] = "true"; },
                "", ""},
        Case<M>{"Name", [](M& m) { m.name = "Hello_World"; }, "/metadata/name", "DNS label"},
        Case<M>{"NameNone", [](M& m) { m.name = ""; }, "/metadata/name", "DNS label"},
        Case<M>{"NameLong", [](M& m) { m.name = std::string(64, 'a'); }, "/metadata/name", "63"},
        Case<M>{"Name63", [](M& m) { m.name = std::string(63, 'a'); }, "", ""},
        Case<M>{"Namespace", [](M& m) { m.ns = "_system"; }, "/metadata/namespace", "DNS label"},
        Case<M>{"AnnotationKey", [](M& m) { m.annotations[""] = ""; }, "/metadata/annotations",
                "1 to 128"},
        Case<M>{"AnnotationValue", [](M& m) { m.annotations["a"] = std::string(5000, 'x'); },
                "/metadata/annotations/a", "4096"},
        Case<M>{"AnnotationMany",
                [](M& m) {
                  for (int i = 0; i < 65; ++i) m.annotations["a" + std::to_string(i)] = "";
                },
                "/metadata/annotations", "at most 64"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(ValidateTriggerUpdateTest, KeepsItsType) {
  EXPECT_THAT(ValidateTriggerUpdate(GoodHttp(), GoodHttp()), IsOk());
  const auto changed = ValidateTriggerUpdate(GoodHttp(), GoodCron());
  EXPECT_THAT(changed,
              IsError(Code::kFailedPrecondition, HasSubstr("keeps its type, which is \"http\"")));
  EXPECT_EQ(changed.error().field, "/spec/type");
}

TEST(ValidateJobUpdateTest, TheRunIdIsNotLowered) {
  api::JobStatus status;
  status.last_run_id = 5;
  auto spec = GoodJob();
  for (const int64_t run_id : {0, 5, 6}) {
    spec.run_id = run_id;
    EXPECT_THAT(ValidateJobUpdate(status, spec), IsOk()) << run_id;
  }
  spec.run_id = 4;
  const auto lowered = ValidateJobUpdate(status, spec);
  EXPECT_THAT(lowered, IsError(Code::kFailedPrecondition,
                               HasSubstr("lowered to 4, but the last run was 5")));
  EXPECT_EQ(lowered.error().field, "/spec/runId");
}

}  // namespace
}  // namespace sless::domain
