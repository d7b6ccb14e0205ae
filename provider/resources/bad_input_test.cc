// Wrong configurations, each with the attribute and the words that the user is shown. Some of them
// pass through a real terraform in tests/acceptance/test_invalid.py.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "client/base/clock.h"
#include "client/base/log.h"
#include "client/base/strings.h"
#include "provider/cty/wire_json.h"
#include "provider/framework/engine/plan.h"
#include "provider/framework/engine/validate.h"
#include "provider/resources/testing/fake_backend.h"
#include "provider/resources/testing/test_provider.h"

namespace sless::resources {
namespace {

namespace engine = framework::engine;

struct Case {
  const char* name;
  const char* type;
  std::string config;  // JSON; "~" in front: the attributes of a good configuration are added
  const char* path;
  const char* text;  // in summary or detail
};

constexpr const char* kGoodFunction = R"("name":"f","runtime":"python3.11","source_dir":"src")";
constexpr const char* kGoodTrigger = R"("name":"t","function":"f","type":"http","http":{})";
constexpr const char* kGoodCron = R"("name":"t","function":"f","type":"cron")";
constexpr const char* kGoodJob = R"("name":"j","function":"f")";

std::string With(const char* base, const std::string& more) {
  return std::string("{") + base + (more.empty() ? "" : ",") + more + "}";
}
std::string Function(const std::string& more) { return With(kGoodFunction, more); }
std::string Code(const std::string& more) {
  return With(R"("name":"f","runtime":"python3.11")", more);
}
std::string Trigger(const std::string& more) { return With(kGoodTrigger, more); }
std::string Cron(const std::string& cron) { return With(kGoodCron, "\"cron\":{" + cron + "}"); }
std::string Http(const std::string& http) {
  return With(R"("name":"t","function":"f","type":"http")", "\"http\":{" + http + "}");
}
std::string Job(const std::string& more) { return With(kGoodJob, more); }
std::string Big(size_t size) { return std::string(size, 'x'); }

void Write(const std::filesystem::path& path, const std::string& text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

class BadInput : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "sless-bad-XXXXXX";
    dir_ = mkdtemp(pattern.data());
    Write(dir_ / "src/handler.py", "import os\n\ndef handle(event, context):\n    return 1\n");
    Write(dir_ / "js/handler.js", "exports.handle = async () => 1;\n");
    Write(dir_ / "deep/top/handler.py", "def handle(event):\n    return 1\n");
    Write(dir_ / "text.zip", "this is no archive\n");
    Write(dir_ / "empty.zip", "");
    std::filesystem::create_directories(dir_ / "nothing");
    std::filesystem::create_directories(dir_ / "link");
    std::filesystem::create_symlink("/etc/passwd", dir_ / "link/handler.py");
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(dir_);
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(dir_);
  }
  std::filesystem::path dir_;
  std::filesystem::path before_;
};

TEST_P(BadInput, NamesTheAttribute) {
  const auto& row = GetParam();
  FakeBackend backend;
  base::SystemClock clock;
  base::NullLogger log;
  engine::Engine engine(MakeTestProvider(&backend), clock);
  engine.Configure({{}, log}, "1.11.4", cty::Value::Object({}), {});
  const auto* entry = engine.catalog().FindResource(row.type);
  ASSERT_NE(entry, nullptr);
  const auto config = cty::DecodeJson(row.config, entry->type);
  ASSERT_TRUE(config.has_value()) << row.config << ": " << config.error().message;

  auto diagnostics = engine::ValidateResource(*entry, *config, {});
  if (!diagnostics.HasError()) {
    const auto plan =
        engine::PlanResource(engine, {{}, log}, *entry,
                             {*config, cty::Value::Null(), *config, "", cty::Value::Null(), {}});
    diagnostics.Append(plan.diagnostics);
  }
  ASSERT_TRUE(diagnostics.HasError());
  bool found = false;
  for (const auto& item : diagnostics) {
    ASSERT_TRUE(item.path.has_value()) << "no path: " << item.summary;
    const auto text = item.summary + "\n" + item.detail;
    found = found || (item.path->ToString() == row.path && base::Contains(text, row.text));
    EXPECT_EQ(text.find("hush-hush"), std::string::npos) << "a value of the environment is shown";
    EXPECT_EQ(item.summary.find_last_of(".\n"), std::string::npos) << item.summary;
  }
  EXPECT_TRUE(found) << "want " << row.path << " with \"" << row.text << "\", got\n"
                     << diagnostics.ToString();
  EXPECT_TRUE(backend.Functions().Look("default/f").spec.runtime.empty()) << "nothing is written";
}

constexpr const char* kF = "sless_function";
constexpr const char* kT = "sless_trigger";
constexpr const char* kJ = "sless_job";

const Case kCases[] = {
    // Names and namespaces.
    {"NameUpper", kF, Code(R"("source_dir":"src","name":"Orders")"), "name", "only a-z"},
    {"NameEmpty", kF, Code(R"("source_dir":"src","name":"")"), "name", "empty"},
    {"NameHyphen", kF, Code(R"("source_dir":"src","name":"-a")"), "name", "must start and end"},
    {"NameLong", kF, Code(R"("source_dir":"src","name":")" + Big(64) + '"'), "name",
     "64 characters"},
    {"NameNull", kF, Code(R"("source_dir":"src","name":null)"), "name",
     "Missing Configuration for Required Attribute"},
    {"NameUnderscore", kJ, R"({"name":"a_b","function":"f"})", "name", "only a-z"},
    {"NamespaceSlash", kF, Function(R"("namespace":"a/b")"), "namespace", "only a-z"},
    {"NamespaceDot", kT, Trigger(R"("namespace":"..")"), "namespace", "only a-z"},
    {"FunctionId", kT, With(R"("name":"t","type":"http","http":{})", R"("function":"default/f")"),
     "function", "only a-z"},
    {"FunctionMissing", kJ, R"({"name":"j"})", "function",
     "Missing Configuration for Required Attribute"},
    // What only the provider sets.
    {"IdSet", kF, Function(R"("id":"default/f")"), "id",
     "Invalid Configuration for Read-Only Attribute"},
    {"PhaseSet", kJ, Job(R"("phase":"Succeeded")"), "phase",
     "Invalid Configuration for Read-Only Attribute"},
    {"UrlSet", kT, Trigger(R"("url":"http://x")"), "url",
     "Invalid Configuration for Read-Only Attribute"},
    {"HashSet", kF, Function(R"("source_hash":"sha256:0")"), "source_hash",
     "Invalid Configuration for Read-Only Attribute"},
    // Runtime and entrypoint.
    {"RuntimeTypo", kF, R"({"name":"f","runtime":"python3.1","source_dir":"src"})", "runtime",
     "Did you mean \"python3.11\"?"},
    {"RuntimeNode", kF, R"({"name":"f","runtime":"node20","source_dir":"src"})", "runtime",
     "nodejs20"},
    {"RuntimeMissing", kF, R"({"name":"f","source_dir":"src"})", "runtime",
     "Missing Configuration for Required Attribute"},
    {"EntrypointNoDot", kF, Function(R"("entrypoint":"handler")"), "entrypoint", "file.function"},
    {"EntrypointEmpty", kF, Function(R"("entrypoint":"")"), "entrypoint", "file.function"},
    {"EntrypointBlank", kF, Function(R"("entrypoint":"my dir/a.handle")"), "entrypoint",
     "letters, digits"},
    {"CodeLarge", kF, Code("\"source_code\":\"" + Big(600 << 10) + "\""), "source_code",
     "at most 524288 bytes"},
    {"CodeNul", kF, Code(R"("source_code":"a\u0000b")"), "source_code", "NUL"},
    {"CodeHashLong", kF, Function("\"code_hash\":\"" + Big(1025) + "\""), "code_hash",
     "at most 1024 bytes"},
    {"EventLarge", "sless_job", Job("\"event_json\":\"" + Big(300 << 10) + "\""), "event_json",
     "at most 262144 bytes"},
    {"EntrypointParent", kF, Function(R"("entrypoint":"../x.handle")"), "entrypoint", "entrypoint"},
    {"HandlerFileMissing", kF, Function(R"("entrypoint":"main.handle")"), "entrypoint", "main.py"},
    {"HandlerFunctionMissing", kF, Function(R"("entrypoint":"handler.handel")"), "entrypoint",
     "handle"},
    {"HandlerOfOtherLanguage", kF, R"({"name":"f","runtime":"nodejs20","source_dir":"src"})",
     "entrypoint", "handler.js"},
    {"HandlerBelowTopFolder", kF, Code(R"("source_dir":"deep")"), "entrypoint", "top/handler"},
    {"InlineWithoutHandler", kF, Code(R"("source_code":"def main(event):\n    return 1\n")"),
     "entrypoint", "main"},
    // Sources.
    {"NoSource", kF, Code(""), "source_dir",
     "Exactly one of source_dir, source_zip and source_code must be set"},
    {"TwoSources", kF, Function(R"("source_code":"x")"), "source_dir", "Exactly one of"},
    {"ThreeSources", kF, Function(R"("source_code":"x","source_zip":"a.zip")"), "source_dir",
     "3 are"},
    {"DirMissing", kF, Code(R"("source_dir":"absent")"), "source_dir", "absent"},
    {"DirIsFile", kF, Code(R"("source_dir":"src/handler.py")"), "source_dir", "handler.py"},
    {"DirEmptyText", kF, Code(R"("source_dir":"")"), "source_dir", "must not be empty"},
    {"DirWithoutFiles", kF, Code(R"("source_dir":"nothing")"), "source_dir", "holds no file"},
    {"DirLinkOut", kF, Code(R"("source_dir":"link")"), "source_dir", "handler.py"},
    {"ZipMissing", kF, Code(R"("source_zip":"absent.zip")"), "source_zip", "absent.zip"},
    {"ZipIsText", kF, Code(R"("source_zip":"text.zip")"), "source_zip", "zip"},
    {"ZipEmpty", kF, Code(R"("source_zip":"empty.zip")"), "source_zip", "empty"},
    {"ZipIsDir", kF, Code(R"("source_zip":"src")"), "source_zip", "src"},
    // Ranges.
    {"MemoryLow", kF, Function(R"("memory_mb":16)"), "memory_mb", "between 32 and 32768"},
    {"MemoryHigh", kF, Function(R"("memory_mb":40000)"), "memory_mb", "between 32 and 32768"},
    {"MemoryFraction", kF, Function(R"("memory_mb":256.5)"), "memory_mb", "256.5"},
    {"MemoryHuge", kF, Function(R"("memory_mb":18446744073709551616)"), "memory_mb",
     "between 32 and 32768"},
    {"TimeoutZero", kF, Function(R"("timeout_sec":0)"), "timeout_sec", "between 1 and 3600"},
    {"TimeoutNegative", kF, Function(R"("timeout_sec":-1)"), "timeout_sec", "got: -1"},
    {"ConcurrencyZero", kF, Function(R"("concurrency":0)"), "concurrency", "between 1 and 1000"},
    {"ReplicasNegative", kF, Function(R"("replicas":-1)"), "replicas", "between 0 and 100"},
    {"ReplicasMany", kF, Function(R"("replicas":101)"), "replicas", "between 0 and 100"},
    {"MaxZero", kF, Function(R"("max_replicas":0)"), "max_replicas", "between 1 and 100"},
    {"IdleZero", kF, Function(R"("idle_timeout_sec":0)"), "idle_timeout_sec",
     "between 1 and 86400"},
    {"BuildZero", kF, Function(R"("build_timeout_sec":0)"), "build_timeout_sec",
     "between 1 and 3600"},
    // Combinations.
    {"ReplicasAndMin", kF, Function(R"("replicas":1,"min_replicas":1)"), "replicas",
     "min_replicas"},
    {"ReplicasAndMax", kF, Function(R"("replicas":1,"max_replicas":1)"), "replicas",
     "max_replicas"},
    {"MinAboveMax", kF, Function(R"("min_replicas":4,"max_replicas":2)"), "min_replicas",
     "max_replicas, which is 2"},
    {"MinAboveDefaultMax", kF, Function(R"("min_replicas":9)"), "min_replicas", "5 (the default)"},
    // Environment and labels.
    {"EnvironmentDigit", kF, Function(R"("environment":{"1A":"hush-hush"})"), "environment[\"1A\"]",
     "does not begin with a digit"},
    {"EnvironmentDash", kF, Function(R"("environment":{"A-B":"hush-hush"})"),
     "environment[\"A-B\"]", "letters, digits"},
    {"EnvironmentEmptyName", kF, Function(R"("environment":{"":"hush-hush"})"), "environment[\"\"]",
     "needs a name"},
    {"EnvironmentReserved", kF, Function(R"("environment":{"SLESS_X":"hush-hush"})"),
     "environment[\"SLESS_X\"]", "SLESS_"},
    {"EnvironmentNull", kF, Function(R"("environment":{"A":null})"), "environment[\"A\"]",
     "must not be null"},
    {"EnvironmentNul", kF, Function("\"environment\":{\"A\":\"hush-hush\\u0000\"}"),
     "environment[\"A\"]", "NUL"},
    {"EnvironmentLarge", kF, Function("\"environment\":{\"A\":\"" + Big(140000) + "\"}"),
     "environment", "131072"},
    {"LabelSpace", kF, Function(R"("labels":{"a b":"c"})"), "labels[\"a b\"]", "must have a key"},
    {"LabelNull", kF, Function(R"("labels":{"a":null})"), "labels[\"a\"]", "must not be null"},
    {"LabelLong", kF, Function("\"labels\":{\"a\":\"" + Big(300) + "\"}"), "labels[\"a\"]",
     "at most 256"},
    // Timeouts.
    {"TimeoutNoUnit", kF, Function(R"("timeouts":{"create":"30"})"), "timeouts.create", "30"},
    {"TimeoutWord", kF, Function(R"("timeouts":{"update":"long"})"), "timeouts.update", "long"},
    {"TimeoutMinus", kF, Function(R"("timeouts":{"delete":"-5m"})"), "timeouts.delete", "-5m"},
    // Triggers.
    {"TypeUnknown", kT, R"({"name":"t","function":"f","type":"htp","http":{}})", "type",
     "Did you mean \"http\"?"},
    {"TypeMissing", kT, R"({"name":"t","function":"f","http":{}})", "type",
     "Missing Configuration for Required Attribute"},
    {"HttpMissing", kT, R"({"name":"t","function":"f","type":"http"})", "http",
     "must be set where type is \"http\""},
    {"CronMissing", kT, With(kGoodCron, ""), "cron", "must be set where type is \"cron\""},
    {"CronForHttp", kT, Trigger(R"("cron":{"schedule":"@daily"})"), "cron",
     "must not be set where type is \"http\""},
    {"HttpForCron", kT, With(kGoodCron, R"("http":{},"cron":{"schedule":"@daily"})"), "http",
     "must not be set where type is \"cron\""},
    {"AuthUnknown", kT, Http(R"("auth":"basic")"), "http.auth", "\"none\", \"token\""},
    {"MethodLower", kT, Http(R"("methods":["get"])"), "http.methods", "\"get\""},
    {"MethodUnknown", kT, Http(R"("methods":["GTE"])"), "http.methods", "Did you mean \"GET\"?"},
    {"MethodsEmpty", kT, Http(R"("methods":[])"), "http.methods", "at least 1"},
    {"MethodNull", kT, Http(R"("methods":[null])"), "http.methods", "null"},
    {"PathRelative", kT, Http(R"("path":"v1")"), "http.path", "must begin with"},
    {"PathParent", kT, Http(R"("path":"/a/../b")"), "http.path", ".."},
    {"PathEnd", kT, Http(R"("path":"/v1/")"), "http.path", "must not end with"},
    {"PathUnicode", kT, Http(R"("path":"/\u00e4")"), "http.path", "unencoded"},
    {"PathTemplate", kT, Http(R"("path":"/{id}")"), "http.path", "unencoded"},
    {"PathLong", kT, Http(R"("path":"/)" + Big(600) + "\""), "http.path", "at most 512 bytes"},
    {"PathPercent", kT, Http(R"("path":"/%2e")"), "http.path", "%"},
    {"PathDouble", kT, Http(R"("path":"//x")"), "http.path", "//"},
    {"PathQuery", kT, Http(R"("path":"/a?b=c")"), "http.path", "?"},
    {"ScheduleMissing", kT, Cron(""), "cron.schedule",
     "Missing Configuration for Required Attribute"},
    {"ScheduleFourFields", kT, Cron(R"("schedule":"* * * *")"), "cron.schedule", "5"},
    {"ScheduleMinute60", kT, Cron(R"("schedule":"60 * * * *")"), "cron.schedule", "minute"},
    {"ScheduleNever", kT, Cron(R"("schedule":"0 0 30 2 *")"), "cron.schedule", "never"},
    {"ScheduleName", kT, Cron(R"("schedule":"@dayly")"), "cron.schedule", "@daily"},
    {"ZoneUnknown", kT, Cron(R"("schedule":"@daily","timezone":"Europe/Berln")"), "cron.timezone",
     "Europe/Berlin"},
    {"ZonePath", kT, Cron(R"("schedule":"@daily","timezone":"../../etc/passwd")"), "cron.timezone",
     "is not an IANA time zone name"},
    {"PayloadNoJson", kT, Cron(R"("schedule":"@daily","payload":"{a:1}")"), "cron.payload", "JSON"},
    {"OverlapUnknown", kT, Cron(R"("schedule":"@daily","overlap":"kill")"), "cron.overlap",
     "\"skip\", \"queue\", \"allow\""},
    {"MisfireUnknown", kT, Cron(R"("schedule":"@daily","misfire":"onec")"), "cron.misfire",
     "Did you mean \"once\"?"},
    // Jobs.
    {"RunIdNegative", kJ, Job(R"("run_id":-1)"), "run_id", "-1"},
    {"RunIdFraction", kJ, Job(R"("run_id":1.5)"), "run_id", "1.5"},
    {"EventNoJson", kJ, Job(R"("event_json":"{")"), "event_json", "JSON"},
    {"EventEmpty", kJ, Job(R"("event_json":"")"), "event_json", "JSON"},
    {"WaitZero", kJ, Job(R"("wait_timeout_sec":0)"), "wait_timeout_sec", "between 1 and 86400"},
    {"RetriesMany", kJ, Job(R"("max_retries":11)"), "max_retries", "between 0 and 10"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BadInput, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sless::resources
