#include "provider/framework/private_data.h"

#include <gtest/gtest.h>

namespace sless::framework {
namespace {

TEST(PrivateData, RoundTrips) {
  PrivateData data;
  EXPECT_EQ(data.Encode(), "");
  data.Set("k", std::string("\0\xff{", 3));
  EXPECT_EQ(data.Encode(), R"({"k":"AP97"})");
  const auto back = PrivateData::Decode(data.Encode());
  EXPECT_EQ(back, data);
  EXPECT_EQ(back.Get("k"), std::string("\0\xff{", 3));
  EXPECT_EQ(back.Get("x"), std::nullopt);
  data.Remove("k");
  EXPECT_EQ(data.Encode(), "");
}

TEST(PrivateData, KeepsForeignContent) {
  for (const char* text : {R"({"schema_version":"1","e2bfb730":{"create":60}})", "\x01\x02", "[1]",
                           "null", R"({"a":"!"})"}) {
    auto data = PrivateData::Decode(text);
    EXPECT_EQ(data.Encode(), text);
    EXPECT_FALSE(data.empty());
    EXPECT_EQ(data.Get("a"), std::nullopt);
    data.Set("mine", "x");
    EXPECT_EQ(data.Encode(), R"({"mine":"eA=="})");
  }
}

}  // namespace
}  // namespace sless::framework
