#include "server/build/process/registry_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace sless::build {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

class RegistrySettingsTest : public testing::Test {
 protected:
  RegistrySettingsTest() {
    char name[] = "/tmp/sless-test-XXXXXX";
    root_ = mkdtemp(name);
  }
  ~RegistrySettingsTest() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = root_ + "/" + name;
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  std::string root_;
};

TEST_F(RegistrySettingsTest, EachToolSeesItsOwnAlone) {
  const std::map<std::string, std::string> all{{"PIP_INDEX_URL", "https://a:pip-secret@h/simple"},
                                               {"NPM_CONFIG_REGISTRY", "https://h"},
                                               {"npm_config__auth", "npm-secret"},
                                               {"npm_config_cache", root_},
                                               {"NODE_EXTRA_CA_CERTS", "/absent"},
                                               {"HTTPS_PROXY", "http://u:proxy-secret@p:1"}};
  Write(".npmrc", "//h/:_authToken=npm-token\n");
  Write(".config/pip/pip.conf", "[global]\n");
  const auto pip = ReadRegistrySettings(Tool::kPip, all, root_, {});
  EXPECT_THAT(pip.environment, UnorderedElementsAre(Key("PIP_INDEX_URL"), Key("HTTPS_PROXY")));
  EXPECT_THAT(pip.home_files,
              ElementsAre(Pair(root_ + "/.config/pip/pip.conf", ".config/pip/pip.conf")));
  EXPECT_THAT(pip.secrets, UnorderedElementsAre("pip-secret", "proxy-secret"));
  const auto npm = ReadRegistrySettings(Tool::kNpm, all, root_, {});
  EXPECT_THAT(npm.environment,
              UnorderedElementsAre(Key("NPM_CONFIG_REGISTRY"), Key("npm_config__auth"),
                                   Key("NODE_EXTRA_CA_CERTS"), Key("HTTPS_PROXY")));
  EXPECT_THAT(npm.home_files, ElementsAre(Pair(root_ + "/.npmrc", ".npmrc")));
  EXPECT_THAT(npm.secrets, UnorderedElementsAre("npm-secret", "npm-token", "proxy-secret"));
}

TEST_F(RegistrySettingsTest, FilesThatSettingsNameAreShown) {
  const std::string ca = Write("ca.pem", ""), wheels = Write("wheels/a.whl", ""),
                    own = Write("own.conf", "[global]\ncert = " + ca +
                                                "\nfind-links =\n  /absent\n  " + root_ +
                                                "/wheels\nlog = " + wheels + "\n"),
                    beside = Write("beside.conf", "");
  const auto pip = ReadRegistrySettings(
      Tool::kPip, {{"PIP_CONFIG_FILE", own}, {"PIP_CACHE_DIR", root_}, {"PIP_FIND_LINKS", "/"}}, "",
      {beside, root_ + "/absent.conf"});
  for (const auto& path : {ca, root_ + "/wheels", own, beside})
    EXPECT_THAT(pip.paths, Contains(path));
  for (const auto& path : {root_, wheels, std::string("/"), root_ + "/absent.conf"})
    EXPECT_THAT(pip.paths, Not(Contains(path)));
  const auto npm = ReadRegistrySettings(
      Tool::kNpm, {}, root_, {Write("npmrc", "cafile=" + ca + "\n//h/:keyfile=\"" + own + "\"\n")});
  for (const auto& path : {ca, own}) EXPECT_THAT(npm.paths, Contains(path));
}

TEST_F(RegistrySettingsTest, ALinkIsShownWithWhatItPointsTo) {
  const std::string real = Write("real.pem", ""), link = root_ + "/link.pem";
  fs::create_symlink(real, link);
  const auto pip = ReadRegistrySettings(Tool::kPip, {{"PIP_CERT", link}}, "", {});
  for (const auto& path : {real, link}) EXPECT_THAT(pip.paths, Contains(path));
  // What each sandbox shows is not mounted again: as a link it could not be.
  const auto there = ReadRegistrySettings(
      Tool::kPip, {{"PIP_CERT", "/usr/bin/env"}, {"SSL_CERT_DIR", "/dev/null"}}, "", {});
  EXPECT_THAT(there.paths, Not(Contains("/usr/bin/env")));
  EXPECT_THAT(there.paths, Not(Contains("/dev/null"))) << "a bound device cannot be opened";
}

struct RedactCase {
  const char* name;
  const char* line;
  const char* want;
};
class Redacts : public testing::TestWithParam<RedactCase> {};
TEST_P(Redacts, WhatIsSecret) {
  EXPECT_EQ(Redact(GetParam().line, {"tok-123456"}), GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(
    Table, Redacts,
    testing::Values(
        RedactCase{"Nothing", "Collecting six==1.16.0", "Collecting six==1.16.0"},
        RedactCase{"Url", "Looking in indexes: https://pypi.example/simple",
                   "Looking in indexes: https://pypi.example/simple"},
        RedactCase{"Password", "GET https://ci:s3cr3t@h:8/x?a=b@c failed",
                   "GET https://***@h:8/x?a=b@c failed"},
        RedactCase{"TokenAsUser", "indexes: https://tok@h/simple, https://u:p@i/simple",
                   "indexes: https://***@h/simple, https://***@i/simple"},
        RedactCase{"AtInPassword", "'http://u:p@ss@h/'", "'http://***@h/'"},
        RedactCase{"PathWithAt", "https://registry/@scope/x", "https://registry/@scope/x"},
        RedactCase{"Known", "npm_config__auth=tok-123456 tok-123456", "npm_config__auth=*** ***"}),
    [](const auto& info) { return info.param.name; });

TEST(RedactSecrets, OfShortOnesIsNotAsked) {
  const auto pip = ReadRegistrySettings(Tool::kPip, {{"PIP_INDEX_URL", "http://u:ab@h/"}}, "", {});
  EXPECT_THAT(pip.secrets, IsEmpty());
}

}  // namespace
}  // namespace sless::build
