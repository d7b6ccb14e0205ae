#include "server/gateway/forwarded.h"

#include <gtest/gtest.h>

#include <vector>

namespace sless::gateway {
namespace {

using Fields = std::vector<http::Headers::Field>;

Origin Of(const std::string& peer, const Fields& fields) {
  http::Request request;
  request.peer = peer;
  request.headers.Add("Host", "own.example:8470");
  for (const auto& [name, value] : fields) request.headers.Add(name, value);
  return OriginOf(request, *base::AddressSet::Parse("10.0.0.0/8, 127.0.0.1, fd00::/8, fe80::/10"),
                  "http");
}

std::string Times(int n, const std::string& text) {
  std::string all;
  for (int i = 0; i < n; ++i) all += text;
  return all;
}

struct Case {
  const char* name;
  std::string peer;
  std::vector<std::string> lines;  // of X-Forwarded-For
  std::string want;
};

const Case kCases[] = {
    {"OfAStrangerNothingCounts", "203.0.113.9", {"198.51.100.1"}, "203.0.113.9"},
    {"OfAStrangerThatNamesAProxyNothingCounts",
     "203.0.113.9",
     {"198.51.100.1, 10.0.0.1"},
     "203.0.113.9"},
    {"UnixSocket", "unix", {"198.51.100.1"}, "unix"},
    {"NoHeader", "10.0.0.1", {}, "10.0.0.1"},
    {"EmptyHeader", "10.0.0.1", {""}, "10.0.0.1"},
    {"OneProxy", "10.0.0.1", {"198.51.100.1"}, "198.51.100.1"},
    {"SpoofedToTheLeft", "10.0.0.1", {"127.0.0.1, 1.1.1.1, 198.51.100.1"}, "198.51.100.1"},
    {"SpoofedAsAProxy", "10.0.0.1", {"1.1.1.1, 10.9.9.9, 198.51.100.1"}, "198.51.100.1"},
    {"TwoProxies", "10.0.0.1", {"198.51.100.1, 10.0.0.2"}, "198.51.100.1"},
    {"AllTrusted", "10.0.0.1", {"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
    {"SeveralLines", "10.0.0.1", {"1.1.1.1", "198.51.100.1", "10.0.0.3, 10.0.0.2"}, "198.51.100.1"},
    {"SpoofedLineBefore", "10.0.0.1", {"10.0.0.7", "198.51.100.1"}, "198.51.100.1"},
    {"GarbageToTheLeftIsNotLookedAt", "10.0.0.1", {"\"<script>, ;;, 198.51.100.1"}, "198.51.100.1"},
    {"GarbageEndsAtTheProxyThatWroteIt", "10.0.0.1", {"1.1.1.1, unknown, 10.0.0.2"}, "10.0.0.2"},
    {"GarbageAlone", "10.0.0.1", {"_hidden"}, "10.0.0.1"},
    {"Port", "10.0.0.1", {"198.51.100.1:4711"}, "198.51.100.1"},
    {"BadPort", "10.0.0.1", {"198.51.100.1:http"}, "10.0.0.1"},
    {"EmptyPort", "10.0.0.1", {"198.51.100.1:"}, "10.0.0.1"},
    {"LongPort", "10.0.0.1", {"198.51.100.1:123456"}, "10.0.0.1"},
    {"V6", "fd00::1", {"2001:DB8:0::1"}, "2001:db8::1"},
    {"V6Brackets", "10.0.0.1", {"[2001:db8::1]"}, "2001:db8::1"},
    {"V6Port", "10.0.0.1", {"[2001:db8::1]:443, [fd00::2]:80"}, "2001:db8::1"},
    {"OpenBracket", "10.0.0.1", {"[2001:db8::1"}, "10.0.0.1"},
    {"WordsAfterTheBracket", "10.0.0.1", {"[2001:db8::1]x"}, "10.0.0.1"},
    {"V4InBrackets", "10.0.0.1", {"[198.51.100.1]"}, "10.0.0.1"},
    {"Quoted", "10.0.0.1", {"\"198.51.100.1\""}, "10.0.0.1"},
    {"EmptyEntries", "10.0.0.1", {" , 198.51.100.1, ,,10.0.0.2, "}, "198.51.100.1"},
    {"MappedPeer", "::ffff:10.0.0.1", {"198.51.100.1"}, "198.51.100.1"},
    {"MappedEntries", "10.0.0.1", {"::ffff:198.51.100.1, ::ffff:10.0.0.2"}, "198.51.100.1"},
    {"PeerWithAZone", "fe80::1%eth0", {"198.51.100.1"}, "198.51.100.1"},
    {"AHundredProxies", "10.0.0.1", {"198.51.100.1" + Times(100, ", 10.0.0.2")}, "198.51.100.1"},
    {"AHundredSpoofed", "10.0.0.1", {Times(100, "10.0.0.2, ") + "198.51.100.1"}, "198.51.100.1"},
    {"OnlyCommas", "10.0.0.1", {Times(5000, ",")}, "10.0.0.1"},
    {"Control", "10.0.0.1", {"198.51.100.1\x01"}, "10.0.0.1"},
};

class ForwardedFor : public testing::TestWithParam<Case> {};
TEST_P(ForwardedFor, GivesTheClient) {
  const auto& c = GetParam();
  Fields fields;
  for (const auto& line : c.lines) fields.emplace_back("x-forwarded-for", line);
  EXPECT_EQ(Of(c.peer, fields).address, c.want);
}
INSTANTIATE_TEST_SUITE_P(Cases, ForwardedFor, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ForwardedProto, CountsOfATrustedPeerWhereItIsWellFormed) {
  EXPECT_EQ(Of("10.0.0.1", {{"X-Forwarded-Proto", "https"}}).scheme, "https");
  EXPECT_EQ(Of("10.0.0.1", {{"X-Forwarded-Proto", " HTTPS "}}).scheme, "https");
  EXPECT_EQ(Of("203.0.113.9", {{"X-Forwarded-Proto", "https"}}).scheme, "http");
  for (const char* bad : {"", "ftp", "https, http", "https,https", "https\t:", "javascript:"}) {
    EXPECT_EQ(Of("10.0.0.1", {{"X-Forwarded-Proto", bad}}).scheme, "http") << bad;
  }
  EXPECT_EQ(Of("10.0.0.1", {{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Proto", "https"}}).scheme,
            "http");
}

TEST(ForwardedHost, CountsOfATrustedPeerWhereItIsWellFormed) {
  for (const char* good : {"shop.example", "shop.example:8443", "[2001:db8::1]:443", "192.0.2.1"}) {
    EXPECT_EQ(Of("10.0.0.1", {{"X-Forwarded-Host", good}}).host, good);
  }
  EXPECT_EQ(Of("203.0.113.9", {{"X-Forwarded-Host", "shop.example"}}).host, "own.example:8470");
  for (const std::string& bad :
       {std::string(), std::string("a, b"), std::string("a/b"), std::string("a b"),
        std::string("user@a"), std::string("a?x"), std::string("a\r\nX: y"),
        std::string("\xc3\xa4"), std::string(262, 'a')}) {
    EXPECT_EQ(Of("10.0.0.1", {{"X-Forwarded-Host", bad}}).host, "own.example:8470") << bad;
  }
  EXPECT_EQ(Of("10.0.0.1", {{"X-Forwarded-Host", "a"}, {"X-Forwarded-Host", "b"}}).host,
            "own.example:8470");
}

}  // namespace
}  // namespace sless::gateway
