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
            {"a.yaml", "listen: x\nlisten_on: y\n", {}, {}},
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
            {"a.yaml", "listen: x\ntrusted_proxies: [10.0.0.1, proxy]", {}, {}},
            {"a.yaml:2", "trusted_proxies", "\"proxy\" is no IP address"}},
        Bad{"NestedList",
            {"a.yaml", "trusted_proxies: [[10.0.0.1]]", {}, {}},
            {"a.yaml:1", "trusted_proxies", "list of single values"}},
        Bad{"BitsBeyondThePrefix",
            {"", "", {{"SLESS_TRUSTED_PROXIES", "10.0.0.1/8"}}, {}},
            {"SLESS_TRUSTED_PROXIES", "write 10.0.0.0/8"}},
        Bad{"NoYaml", {"a.yaml", "listen: \"x\nhttp: {", {}, {}}, {"a.yaml:", "no YAML"}},
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
