#include "server/config/config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "client/base/testing/result_matchers.h"

namespace sless::config {
namespace {

using base::Code;
using base::IsError;
using testing::AllOf;
using testing::HasSubstr;

TEST(Load, LaterSourcesWin) {
  Sources sources{
      "slessd.yaml", "listen: 127.0.0.1:1\nhttp:\n  workers: 5\njobs: {workers: 6}\n", {}, {}};
  auto options = Load(sources);
  ASSERT_THAT(options, base::IsOk());
  EXPECT_EQ(options->listen, "127.0.0.1:1");
  EXPECT_EQ(options->http_workers, 5);
  EXPECT_EQ(options->build_workers, 2);
  sources.environment = {
      {"SLESS_HTTP_WORKERS", "7"}, {"SLESS_JOBS_WORKERS", "8"}, {"SLESS_TOKEN", "of the provider"}};
  sources.flags = {{"http.workers", "9"}};
  options = Load(sources);
  ASSERT_THAT(options, base::IsOk());
  EXPECT_EQ(options->http_workers, 9);
  EXPECT_EQ(options->jobs_workers, 8);
}

TEST(Load, ListsAreListsOrTextWithCommas) {
  for (const char* text :
       {"trusted_proxies: [10.0.0.0/8, '::1']", "trusted_proxies:\n  - 10.0.0.0/8\n  - ::1\n",
        "trusted_proxies: 10.0.0.0/8, ::1"}) {
    const auto options = Load({"a.yaml", text, {}, {}});
    ASSERT_THAT(options, base::IsOk()) << text;
    EXPECT_EQ(options->trusted_proxies.ToString(), "10.0.0.0/8, ::1");
    const auto again = Load({"x", ToYaml(*options), {}, {}});
    ASSERT_THAT(again, base::IsOk());
    EXPECT_EQ(again->trusted_proxies.ToString(), "10.0.0.0/8, ::1");
  }
  for (const char* text : {"trusted_proxies:", "trusted_proxies: []", "trusted_proxies: ''"}) {
    const auto options = Load({"a.yaml", text, {}, {}});
    ASSERT_THAT(options, base::IsOk()) << text;
    EXPECT_EQ(options->trusted_proxies.ToString(), "");
  }
  const auto options =
      Load({"a.yaml", "trusted_proxies: ::1", {}, {{"trusted_proxies", "192.0.2.7"}}});
  ASSERT_THAT(options, base::IsOk());
  EXPECT_EQ(options->trusted_proxies.ToString(), "192.0.2.7");
}

struct Bad {
  const char* name;
  Sources sources;
  std::vector<std::string> texts;
};
class LoadRejects : public testing::TestWithParam<Bad> {};
TEST_P(LoadRejects, WithPlaceAndReason) {
  const auto options = Load(GetParam().sources);
  ASSERT_FALSE(options.has_value());
  EXPECT_EQ(options.error().code, Code::kInvalidArgument);
  for (const auto& text : GetParam().texts) EXPECT_THAT(options.error().message, HasSubstr(text));
}
INSTANTIATE_TEST_SUITE_P(
    Cases, LoadRejects,
    testing::Values(
        Bad{"UnknownKey",
            {"a.yaml", "listen: x:1\nlisten_on: y\n", {}, {}},
            {"a.yaml:2", "\"listen_on\"", "listen"}},
        Bad{"UnknownInGroup",
            {"a.yaml", "http:\n  worker: 3\n", {}, {}},
            {"a.yaml:2", "did you mean \"http.workers\""}},
        Bad{"Bounds",
            {"a.yaml", "http:\n\n  workers: 0\n", {}, {}},
            {"a.yaml:3", "http.workers", "1 to 1024", "\"0\""}},
        Bad{"NoNumber",
            {"a.yaml", "jobs: {workers: many}", {}, {}},
            {"a.yaml:1", "whole number", "\"many\""}},
        Bad{"List", {"a.yaml", "listen: [a, b]", {}, {}}, {"a.yaml:1", "a list"}},
        Bad{"NoAddress",
            {"a.yaml", "listen: x:1\ntrusted_proxies: [10.0.0.1, proxy]", {}, {}},
            {"a.yaml:2", "trusted_proxies", "\"proxy\" is no IP address"}},
        Bad{"NestedList",
            {"a.yaml", "trusted_proxies: [[10.0.0.1]]", {}, {}},
            {"a.yaml:1", "trusted_proxies", "list of single values"}},
        Bad{"BitsBeyondThePrefix",
            {"", "", {{"SLESS_TRUSTED_PROXIES", "10.0.0.1/8"}}, {}},
            {"SLESS_TRUSTED_PROXIES", "write 10.0.0.0/8"}},
        Bad{"NoYaml", {"a.yaml", "listen: \"x\nhttp: {", {}, {}}, {"a.yaml:", "no YAML"}},
        Bad{"Twice",
            {"a.yaml", "listen: a:1\nlog_level: info\nlisten: b:2\n", {}, {}},
            {"a.yaml:3", "listen is given twice, first in line 1"}},
        Bad{"TwiceInGroup",
            {"a.yaml", "http:\n  workers: 5\n  workers: 5\n", {}, {}},
            {"a.yaml:3", "http.workers is given twice, first in line 2"}},
        Bad{"GroupTwice",
            {"a.yaml", "http: {workers: 5}\nhttp:\n  max_connections: 99\n", {}, {}},
            {"a.yaml:2", "http is given twice"}},
        Bad{"TwiceInBothForms",
            {"a.yaml", "http: {workers: 5}\nhttp.workers: 5\n", {}, {}},
            {"a.yaml:2", "http.workers is given twice"}},
        Bad{"SecondDocument",
            {"a.yaml", "listen: a:1\n---\nlog_level: warn\n", {}, {}},
            {"a.yaml:2", "second"}},
        Bad{"OnlyAComma", {"a.yaml", ",*b]\nlisten: a:1\n", {}, {}}, {"a.yaml:"}},
        Bad{"UnknownWithoutValue",
            {"a.yaml", "external_ulr:\n", {}, {}},
            {"a.yaml:1", "did you mean \"external_url\""}},
        Bad{"UnknownGroupWithoutValue", {"a.yaml", "htp:\n", {}, {}}, {"a.yaml:1", "\"htp\""}},
        Bad{"UnknownEmptyGroup", {"a.yaml", "htp: {}\n", {}, {}}, {"a.yaml:1", "\"htp\""}},
        Bad{"UnknownInGroupWithoutValue",
            {"a.yaml", "http: {wrkers: }\n", {}, {}},
            {"a.yaml:1", "did you mean \"http.workers\""}},
        Bad{"ValueForAGroup", {"a.yaml", "http: 5\n", {}, {}}, {"a.yaml:1", "http", "below it"}},
        Bad{"MappingForAValue", {"a.yaml", "listen: {}\n", {}, {}}, {"a.yaml:1", "a mapping"}},
        Bad{"NoText", {"a.yaml", std::string("\xff\xfe\0", 3), {}, {}}, {"a.yaml:1", "UTF-8"}},
        Bad{"LineEnd",
            {"a.yaml", "listen: x:1\ndata_dir: \"x\\r\"\n", {}, {}},
            {"a.yaml:2", "data_dir", "control characters"}},
        Bad{"Url", {"a.yaml", "external_url: abc", {}, {}}, {"a.yaml:1", "https", "\"abc\""}},
        Bad{"UrlScheme", {"", "", {}, {{"external_url", "ftp://x"}}}, {"--external-url", "ftp"}},
        Bad{"UrlQuery",
            {"", "", {{"SLESS_EXTERNAL_URL", "http://x/?a=b"}}, {}},
            {"SLESS_EXTERNAL_URL", "no query"}},
        Bad{"UrlHost", {"", "", {}, {{"external_url", "http:///x"}}}, {"no host"}},
        Bad{"UrlPort", {"", "", {}, {{"external_url", "http://x:99999"}}}, {"the port"}},
        Bad{"UrlSpace", {"", "", {}, {{"external_url", "http://x /"}}}, {"%XX"}},
        Bad{"ListenWithoutPort", {"", "", {}, {{"listen", "localhost"}}}, {"HOST:PORT"}},
        Bad{"ListenPort", {"", "", {}, {{"listen", "localhost:70000"}}}, {"0 to 65535"}},
        Bad{"ListenDescriptor", {"", "", {}, {{"listen", "fd:3"}}}, {"--listen", "descriptor"}},
        Bad{"NoMapping", {"a.yaml", "just words", {}, {}}, {"a.yaml:1", "name: value"}},
        Bad{"Word",
            {"", "", {{"SLESS_LOG_LEVEL", "wran"}}, {}},
            {"SLESS_LOG_LEVEL", "did you mean \"warn\""}},
        Bad{"Flag",
            {"", "", {}, {{"shutdown_grace_sec", "-1"}}},
            {"--shutdown-grace-sec", "0 to 3600"}},
        Bad{"Switch",
            {"", "", {{"SLESS_INSECURE_NO_SANDBOX", "yes"}}, {}},
            {"true or false", "\"yes\""}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Load, TakesWhatIsRight) {
  for (const char* text : {"---\nlisten: '[::1]:0'\n", "listen: unix:/run/s\n...\n---\n", "",
                           "external_url: https://fn.example.com:8443/base/\n",
                           "external_url: http://[::1]\nhttp:\n", "external_url: ''\nlisten:\n"}) {
    EXPECT_THAT(Load({"a.yaml", text, {}, {}}), base::IsOk()) << text;
  }
}

TEST(Load, ShowsNoPasswordOfAUrl) {
  const auto options = Load({"a.yaml", "external_url: http://u:hunter2@x/", {}, {}});
  ASSERT_FALSE(options.has_value());
  EXPECT_THAT(options.error().message,
              AllOf(HasSubstr("user information"), testing::Not(HasSubstr("hunter2"))));
}

TEST(ToYaml, GivesTheSameOptionsAgain) {
  auto options =
      Load({"",
            "",
            {},
            {{"listen", "[::1]:80"}, {"http.workers", "3"}, {"insecure_no_sandbox", "true"}}});
  ASSERT_THAT(options, base::IsOk());
  const auto text = ToYaml(*options);
  const auto again = Load({"x", text, {}, {}});
  ASSERT_THAT(again, base::IsOk());
  EXPECT_EQ(ToYaml(*again), text);
  EXPECT_EQ(again->listen, "[::1]:80");
  EXPECT_TRUE(again->insecure_no_sandbox);
}

std::string Row(const Setting& setting) {
  return fmt::format("| `{}` | {} | {} | `{}` | `{}` | {} |\n", setting.name,
                     setting.fallback.empty() ? "" : "`" + setting.fallback + "`", setting.allowed,
                     EnvironmentName(setting.name), FlagName(setting.name), setting.text);
}

TEST(Docs, TellTheTruth) {
  std::ifstream file(SLESS_SOURCE_DIR "/docs/configuration.md");
  std::stringstream text;
  text << file.rdbuf();
  std::string rows;
  for (const auto& setting : Settings()) rows += Row(setting);
  EXPECT_THAT(text.str(), HasSubstr(rows)) << "the table of docs/configuration.md shall be:\n"
                                           << rows;
}

TEST(Docs, TheSampleFileIsTaken) {
  std::ifstream file(SLESS_SOURCE_DIR "/server/deploy/slessd.yaml");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(Load({"slessd.yaml", text.str(), {}, {}}), base::IsOk());
}

}  // namespace
}  // namespace sless::config
