#include "server/gateway/trigger_match.h"

#include <gtest/gtest.h>

#include "client/api/error_body.h"
#include "client/base/strings.h"

namespace sless::gateway {
namespace {

HttpRoute Open(std::string name, std::string path, std::vector<std::string> methods = {}) {
  return {std::move(name), true, {"none", std::move(methods), std::move(path)}};
}
HttpRoute Closed(std::string name, std::string path, std::vector<std::string> methods = {}) {
  return {std::move(name), true, {"token", std::move(methods), std::move(path)}};
}
HttpRoute Disabled(HttpRoute route) {
  route.enabled = false;
  return route;
}

struct Case {
  const char* name;
  std::vector<HttpRoute> triggers;
  std::string method;
  std::string path;
  std::string want;  // the trigger's name, or the status where none serves
};

const Case kCases[] = {
    {"NoTrigger", {}, "GET", "/", "404"},
    {"WholeFunction", {Open("a", "/")}, "GET", "/x/y", "a"},
    {"PrefixItself", {Open("a", "/x")}, "GET", "/x", "a"},
    {"SlashAtTheEndOfThePath", {Open("a", "/x/")}, "GET", "/x/y", "a"},
    {"WholeSegmentsOnly", {Open("a", "/x")}, "GET", "/xy", "404"},
    {"NoPrefix", {Open("a", "/x")}, "GET", "/", "404"},
    {"LongestWins", {Open("a", "/"), Closed("b", "/x"), Open("c", "/x/y")}, "GET", "/x/yz", "b"},
    {"LongestWinsWhateverTheOrder",
     {Open("c", "/x/y"), Closed("b", "/x"), Open("a", "/")},
     "GET",
     "/x/y",
     "c"},
    {"NarrowerRuleIsNotPassedOverForItsMethod",
     {Open("a", "/"), Open("b", "/x", {"GET"})},
     "POST",
     "/x",
     "405"},
    {"NarrowerRuleIsNotPassedOverWhenDisabled",
     {Open("a", "/"), Disabled(Open("b", "/x"))},
     "GET",
     "/x",
     "503"},
    {"HeadIsServedWithGet", {Open("a", "/", {"GET"})}, "HEAD", "/", "a"},
    {"MethodsAreSharedOut",
     {Open("a", "/", {"GET"}), Closed("b", "/", {"POST"})},
     "POST",
     "/",
     "b"},
    {"SamePathTokenBeforeName", {Open("a", "/x"), Closed("b", "/x")}, "GET", "/x", "b"},
    {"SamePathTokenBeforeNameWhateverTheOrder",
     {Closed("b", "/x/"), Open("a", "/x")},
     "GET",
     "/x",
     "b"},
    {"SamePathFirstName", {Open("b", "/x"), Open("a", "/x")}, "GET", "/x", "a"},
    {"SamePathDisabledOneIsLeftOut",
     {Open("a", "/x"), Disabled(Closed("b", "/x"))},
     "GET",
     "/x",
     "a"},
    {"AllDisabled", {Disabled(Open("a", "/"))}, "GET", "/", "503"},
    {"DisabledAndAnotherMethod",
     {Disabled(Open("a", "/")), Open("b", "/", {"POST"})},
     "GET",
     "/",
     "503"},
};

class MatchTriggerTest : public testing::TestWithParam<Case> {};

TEST_P(MatchTriggerTest, FindsTheTrigger) {
  const auto& c = GetParam();
  FunctionRoute function;
  function.ns = "default";
  function.name = "f";
  function.http = c.triggers;
  const auto match = MatchTrigger(function, c.method, c.path);
  const auto status = std::to_string(api::HttpStatus(match.error));
  EXPECT_EQ(match.route != nullptr ? match.route->trigger : status, c.want);
  EXPECT_EQ(match.error.reason == "MethodNotAllowed", !match.allow.empty());
}

TEST(MatchTrigger, AllowNamesAllMethodsThatAreServed) {
  FunctionRoute function;
  function.http = {Open("a", "/", {"PUT", "GET"}), Closed("b", "/", {"GET", "DELETE"}),
                   Open("c", "/x", {"POST"})};
  EXPECT_EQ(MatchTrigger(function, "PATCH", "/").allow, "DELETE, GET, HEAD, PUT");
  EXPECT_EQ(MatchTrigger(function, "GET", "/x").allow, "POST");
}

INSTANTIATE_TEST_SUITE_P(Cases, MatchTriggerTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace sless::gateway
