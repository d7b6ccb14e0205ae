#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/base/clock.h"
#include "client/base/digest.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "client/base/testing/result_matchers.h"

namespace sless::base {
namespace {

TEST(Time, RoundTrips) {
  const auto time = ParseTime("2026-02-28T23:59:58.125Z");
  ASSERT_THAT(time, IsOk());
  EXPECT_EQ(FormatTime(*time), "2026-02-28T23:59:58.125Z");
  EXPECT_EQ(FormatTime(*ParseTime("2026-03-01T01:00:00+02:00")), "2026-02-28T23:00:00.000Z");
}

TEST(Time, RejectsWhatIsNotATime) {
  for (const char* bad : {"", "2026", "2026-02-30T00:00:00Z", "2026-01-01T25:00:00Z",
                          "2026-01-01T00:00:00", "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00Zx",
                          "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2026-01-01T-1:00:00Z",
                          "2026-01-01T 1:00:00Z", "2026-01-01T00:00:00+-1:00"}) {
    EXPECT_FALSE(ParseTime(bad)) << bad;
  }
}

TEST(Json, ErrorNamesLineAndColumn) {
  EXPECT_THAT(ParseJson("{\n  \"a\": ,\n}"),
              IsError(Code::kInvalidArgument, testing::HasSubstr("line 2")));
  EXPECT_THAT(ParseJson(""), IsError(Code::kInvalidArgument, testing::HasSubstr("empty")));
  EXPECT_THAT(ParseJson("1e999"),
              IsError(Code::kInvalidArgument, testing::HasSubstr("out of range")));
}

TEST(Json, DepthIsLimited) {
  EXPECT_THAT(ParseJson(std::string(100, '[') + std::string(100, ']')), IsOk());
  EXPECT_THAT(ParseJson(std::string(100000, '[')),
              IsError(Code::kInvalidArgument, testing::HasSubstr("nested")));
}

TEST(Json, CheckSaysWhatParseSays) {
  for (const std::string& text :
       {std::string("[1, {\"a\": \"\\u00e9\"}, -1e5, null]"),
        std::string("123456789012345678901234567890"), std::string(), std::string("{"),
        std::string("[1,]"), std::string("1e400"), std::string("\"\xff\""), std::string("1 2"),
        std::string(101, '[') + std::string(101, ']')}) {
    const auto parsed = ParseJson(text);
    const auto checked = CheckJson(text);
    EXPECT_EQ(parsed.has_value(), checked.has_value()) << text;
    if (!parsed && !checked) {
      EXPECT_EQ(parsed.error().message, checked.error().message);
    }
  }
}

TEST(Json, CheckAcceptsAndRefuses) {
  for (const char* good : {"1", "\"x\"", "null", "[1,{\"a\":[]}]", " {} ",
                           "123456789012345678901234567890", "1e300"}) {
    EXPECT_THAT(CheckJson(good), IsOk()) << good;
  }
  for (const char* bad :
       {"", "{", "{bad", "[1,]", "1 2", "NaN", "'x'", "\"\xff\"", "\"\\ud800\"", "1e999"}) {
    EXPECT_THAT(CheckJson(bad), IsError(Code::kInvalidArgument, testing::_)) << bad;
  }
  EXPECT_THAT(CheckJson(std::string(100, '[') + std::string(100, ']')), IsOk());
  EXPECT_THAT(CheckJson(std::string(5'000'000, '[')),
              IsError(Code::kInvalidArgument, testing::HasSubstr("deeper")));
}

TEST(Json, EqualByMeaning) {
  EXPECT_TRUE(JsonEqual(R"({"a":1,"b":[1.0,2]})", R"({ "b": [1, 2.0], "a": 1 })"));
  EXPECT_TRUE(JsonEqual("100000000000000000000", "100000000000000000000"));
  EXPECT_FALSE(JsonEqual("100000000000000000000", "100000000000000000001"));
  EXPECT_FALSE(JsonEqual("{}", "[]"));
  EXPECT_FALSE(JsonEqual("{", "{"));
}

TEST(Strings, DnsLabel) {
  EXPECT_EQ(DnsLabelProblem("a-1"), "");
  for (const std::string bad : {"", "-a", "a-", "A", "a_b", "a.b", "ä"})
    EXPECT_NE(DnsLabelProblem(bad), "") << bad;
  EXPECT_EQ(DnsLabelProblem(std::string(63, 'a')), "");
  EXPECT_NE(DnsLabelProblem(std::string(64, 'a')), "");
}

TEST(Strings, Nearest) {
  EXPECT_EQ(Nearest("python3.1", {"python3.11", "nodejs20"}), "python3.11");
  EXPECT_EQ(Nearest("cobol-1985", {"python3.11", "nodejs20"}), "");
}

TEST(Strings, LowerTouchesAsciiLettersOnly) {
  EXPECT_EQ(Lower("aZ-[@`{9 \xc3\x84\xc0"), "az-[@`{9 \xc3\x84\xc0");
}

TEST(Strings, Utf8AndTruncate) {
  EXPECT_TRUE(IsUtf8("aä€😀"));
  for (const char* bad : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xe2\x82"})
    EXPECT_FALSE(IsUtf8(bad));
  EXPECT_EQ(Truncate("aä", 2), "a…");
}

TEST(Strings, Base64AndPercent) {
  for (const auto& text :
       std::vector<std::string>{"", "a", "ab", "abc", std::string("\0\xff", 2)}) {
    EXPECT_EQ(*Base64Decode(Base64Encode(text)), text);
    EXPECT_EQ(*PercentDecode(PercentEncode(text)), text);
  }
  for (const char* bad : {"a", "AA==\n\n\n\n", "AA==AAAA", "====", "A===", "=AAA", "AA=A", " AAA",
                          "AA\nA", "AAA\n", "AA-_", "AAAAA"}) {
    EXPECT_FALSE(Base64Decode(bad)) << bad;
  }
  EXPECT_FALSE(PercentDecode("%4"));
}

TEST(Digest, ContentHash) {
  const std::string hash = "sha256:" + Sha256Hex("");
  EXPECT_TRUE(IsContentHash(hash));
  EXPECT_FALSE(IsContentHash(hash + "0"));
  EXPECT_FALSE(IsContentHash(hash.substr(1)));
  EXPECT_FALSE(IsContentHash("sha256:" + std::string(64, 'A')));
  EXPECT_FALSE(IsContentHash(""));
}

TEST(Digest, Sha256) {
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_TRUE(ConstantTimeEqual("ab", "ab"));
  EXPECT_FALSE(ConstantTimeEqual("ab", "ac"));
  EXPECT_FALSE(ConstantTimeEqual("ab", "abc"));
}

}  // namespace
}  // namespace sless::base
