#include "provider/plugin/handshake.h"

#include <gtest/gtest.h>

#include <vector>

namespace sless::plugin {
namespace {

constexpr const char* kCookie =
    "TF_PLUGIN_MAGIC_COOKIE=d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2";

Environment Read(std::vector<const char*> entries) {
  entries.push_back(nullptr);
  return ReadEnvironment(entries.data(), "my-cloud");
}

TEST(ReadEnvironment, TakesWhatTheHostSets) {
  const Environment e = Read({kCookie, "PLUGIN_PROTOCOL_VERSIONS=6,5", "PLUGIN_MIN_PORT=10000",
                              "PLUGIN_MAX_PORT=25000", "PLUGIN_CLIENT_CERT=-----BEGIN\nA=B\n",
                              "TMPDIR=/var/tmp", "HOME=/root"});
  EXPECT_TRUE(e.cookie_matches);
  EXPECT_EQ(e.protocol_versions, "6,5");
  EXPECT_EQ(e.min_port, 10000);
  EXPECT_EQ(e.max_port, 25000);
  EXPECT_EQ(e.client_certificate, "-----BEGIN\nA=B\n");
  EXPECT_EQ(e.temp_folder, "/var/tmp");
  EXPECT_FALSE(e.names_multiplexing);
}

TEST(ReadEnvironment, WithoutEverything) {
  const Environment e = ReadEnvironment(nullptr, "x");
  EXPECT_FALSE(e.cookie_matches);
  EXPECT_EQ(e.client_certificate, "");
  EXPECT_EQ(e.log_level, base::Level::kWarn);
}

struct CookieCase {
  const char* entry;
  bool ok;
};
TEST(ReadEnvironment, ComparesTheWholeCookie) {
  for (
      const auto& [entry, ok] : std::vector<CookieCase>{
          {kCookie, true},
          {"TF_PLUGIN_MAGIC_COOKIE=", false},
          {"TF_PLUGIN_MAGIC_COOKIE=d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b",
           false},
          {"TF_PLUGIN_MAGIC_COOKIE="
           "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2 ",
           false},
          {"TF_PLUGIN_MAGIC_COOKI=d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
           false}}) {
    EXPECT_EQ(Read({entry}).cookie_matches, ok) << entry;
  }
}

struct PortCase {
  const char* min;
  const char* max;
  int want_min;
  int want_max;
};
TEST(ReadEnvironment, TakesPortsOnlyAsARange) {
  for (const auto& c : std::vector<PortCase>{{"PLUGIN_MIN_PORT=5", "PLUGIN_MAX_PORT=7", 5, 7},
                                             {"PLUGIN_MIN_PORT=7", "PLUGIN_MAX_PORT=5", 0, 0},
                                             {"PLUGIN_MIN_PORT=x", "PLUGIN_MAX_PORT=5", 0, 0},
                                             {"PLUGIN_MIN_PORT=", "PLUGIN_MAX_PORT=", 0, 0},
                                             {"PLUGIN_MIN_PORT=1", "PLUGIN_MAX_PORT=70000", 0, 0},
                                             {"PLUGIN_MIN_PORT=-3", "PLUGIN_MAX_PORT=9", 0, 0}}) {
    const Environment e = Read({c.min, c.max});
    EXPECT_EQ(e.min_port, c.want_min) << c.min;
    EXPECT_EQ(e.max_port, c.want_max) << c.max;
  }
}

struct LogCase {
  std::vector<const char*> entries;
  std::optional<base::Level> want;
};
TEST(ReadEnvironment, TakesTheMostVerboseLogLevel) {
  using base::Level;
  for (const auto& c : std::vector<LogCase>{
           {{}, Level::kWarn},
           {{"TF_LOG="}, Level::kWarn},
           {{"TF_LOG=debug"}, Level::kDebug},
           {{"TF_LOG=JSON"}, Level::kTrace},
           {{"TF_LOG=whatever"}, Level::kTrace},
           {{"TF_LOG=OFF"}, std::nullopt},
           {{"TF_LOG=off", "TF_LOG_PROVIDER=INFO"}, Level::kInfo},
           {{"TF_LOG=ERROR"}, Level::kError},
           {{"TF_LOG=ERROR", "TF_LOG_PROVIDER_MY_CLOUD=TRACE"}, Level::kTrace},
           {{"TF_LOG_PROVIDER_OTHER=TRACE"}, Level::kWarn},
           {{"TF_LOG_PROVIDER=WARN", "TF_LOG_PROVIDER_MY_CLOUD=ERROR"}, Level::kWarn}}) {
    EXPECT_EQ(Read(c.entries).log_level, c.want) << (c.entries.empty() ? "" : c.entries.back());
  }
}

TEST(OffersVersion, FindsTheNumber) {
  EXPECT_TRUE(OffersVersion("5,6", 6));
  EXPECT_TRUE(OffersVersion("6", 6));
  EXPECT_TRUE(OffersVersion(" 7, x,6 ", 6));
  EXPECT_TRUE(OffersVersion("", 6));
  EXPECT_FALSE(OffersVersion("5", 6));
  EXPECT_FALSE(OffersVersion("66,16,six", 6));
}

struct LineCase {
  Endpoint endpoint;
  std::string certificate;
  bool multiplexing;
  const char* want;
};
TEST(HandshakeLine, HasTheFormThatHostsRead) {
  for (const auto& c : std::vector<LineCase>{
           {{Endpoint::Network::kUnix, "/tmp/a/rpc.sock"},
            "",
            false,
            "1|6|unix|/tmp/a/rpc.sock|grpc|\n"},
           {{Endpoint::Network::kTcp, "127.0.0.1:10001"},
            "",
            false,
            "1|6|tcp|127.0.0.1:10001|grpc|\n"},
           // One, two and no bytes over: never padded.
           {{Endpoint::Network::kUnix, "/s"}, "abcd", false, "1|6|unix|/s|grpc|YWJjZA\n"},
           {{Endpoint::Network::kUnix, "/s"}, "abcde", false, "1|6|unix|/s|grpc|YWJjZGU\n"},
           {{Endpoint::Network::kUnix, "/s"}, "abcdef", true, "1|6|unix|/s|grpc|YWJjZGVm|false\n"},
           {{Endpoint::Network::kUnix, "/s"}, "\xff\xfe\xfb", false, "1|6|unix|/s|grpc|//77\n"}}) {
    EXPECT_EQ(HandshakeLine(c.endpoint, c.certificate, c.multiplexing), c.want);
  }
}

TEST(Reattach, IsOneVariableForAShell) {
  const std::string json =
      ReattachJson("sless/sless", 42, {Endpoint::Network::kUnix, "/tmp/it's/rpc.sock"});
  EXPECT_EQ(json, R"({"sless/sless":{"Protocol":"grpc","ProtocolVersion":6,"Pid":42,"Test":true,)"
                  R"("Addr":{"Network":"unix","String":"/tmp/it's/rpc.sock"}}})");
  const std::string text = ReattachText(json);
  EXPECT_NE(text.find("\tTF_REATTACH_PROVIDERS='{\"sless/sless\""), std::string::npos) << text;
  EXPECT_NE(text.find(R"(it'"'"'s)"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n\n"));
}

}  // namespace
}  // namespace sless::plugin
