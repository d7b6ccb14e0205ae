#include "client/base/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/base/testing/result_matchers.h"

namespace sless::base {
namespace {

using testing::HasSubstr;

IpAddress Address(std::string_view text) {
  const auto address = IpAddress::Parse(text);
  EXPECT_THAT(address, IsOk()) << text;
  return address.value_or(IpAddress());
}

TEST(IpAddress, IsReadAndWrittenInTheShortestForm) {
  EXPECT_EQ(Address("192.0.2.1").ToString(), "192.0.2.1");
  EXPECT_EQ(Address("2001:DB8:0:0:0:0:0:1").ToString(), "2001:db8::1");
  EXPECT_EQ(Address("::ffff:192.0.2.1").ToString(), "192.0.2.1");
  EXPECT_EQ(Address("::ffff:c000:201"), Address("192.0.2.1"));
  EXPECT_EQ(Address("::").ToString(), "::");
}

TEST(IpAddress, RefusesWhatIsNone) {
  for (const std::string_view text :
       {"", " ", "1", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "0x1.2.3.4", "1.2.3.4:80",
        "[::1]", "::1%lo", "1.2.3.4 ", "fe80", ":::", "1::2::3", "unknown", "_hidden", "1.2.3.4/8",
        "1.2.3.\xd9\xa4"}) {
    EXPECT_THAT(IpAddress::Parse(text), IsError(Code::kInvalidArgument, HasSubstr("no IP")))
        << text;
  }
  EXPECT_FALSE(IpAddress::Parse(std::string_view("1.2.3.4\0x", 9)).has_value());
  EXPECT_FALSE(IpAddress::Parse("1.2.3.4" + std::string(100'000, ' ')).has_value());
}

struct Member {
  std::string_view set;
  std::string_view address;
  bool in;
};
TEST(AddressSet, ContainsWhatItsBlocksHold) {
  for (const auto& [text, address, in] : {
           Member{"", "127.0.0.1", false},
           Member{"127.0.0.1", "127.0.0.1", true},
           Member{"127.0.0.1", "127.0.0.2", false},
           Member{"10.0.0.0/8", "10.255.255.255", true},
           Member{"10.0.0.0/8", "11.0.0.0", false},
           Member{"192.168.4.0/22", "192.168.7.255", true},
           Member{"192.168.4.0/22", "192.168.8.0", false},
           Member{"0.0.0.0/0", "203.0.113.9", true},
           Member{"0.0.0.0/0", "2001:db8::1", false},
           Member{"::/0", "203.0.113.9", false},
           Member{"::/0", "2001:db8::1", true},
           Member{"fd00::/8", "fdff::1", true},
           Member{"fd00::/8", "fe00::1", false},
           Member{"2001:db8:0:8000::/49", "2001:db8:0:ffff::", true},
           Member{"2001:db8:0:8000::/49", "2001:db8:0:7fff::", false},
           Member{"10.0.0.0/8", "::ffff:10.1.2.3", true},
           Member{"::ffff:10.0.0.0/104", "10.1.2.3", true},
           Member{" 10.0.0.1 ,\tfd00::/8", "fd00::2", true},
       }) {
    const auto set = AddressSet::Parse(text);
    ASSERT_THAT(set, IsOk()) << text;
    EXPECT_EQ(set->Contains(Address(address)), in) << text << " " << address;
    const auto again = AddressSet::Parse(set->ToString());
    ASSERT_THAT(again, IsOk()) << set->ToString();
    EXPECT_EQ(again->ToString(), set->ToString());
  }
}

TEST(AddressSet, SaysWhichEntryIsWrongAndWhy) {
  const std::vector<std::pair<std::string_view, std::string_view>> kBad{
      {"10.0.0.0/33", "from 0 to 32"},
      {"10.0.0.0/-1", "from 0 to 32"},
      {"10.0.0.0/", "\"10.0.0.0/\""},
      {"10.0.0.0/8/8", "from 0 to 32"},
      {"10.0.0.0/255.0.0.0", "from 0 to 32"},
      {"fd00::/129", "from 0 to 128"},
      {"::ffff:10.0.0.0/8", "from 96 to 128"},
      {"10.0.0.1/8", "write 10.0.0.0/8 for the block, or 10.0.0.1"},
      {"fd00::1/8", "write fd00::/8"},
      {"10.0.0.1, , 10.0.0.2", "\"\" is no IP address"},
      {"10.0.0.1,", "\"\" is no IP address"},
      {"10.0.0.1 10.0.0.2", "\"10.0.0.1 10.0.0.2\""},
      {"proxy.internal", "\"proxy.internal\" is no IP address"},
  };
  for (const auto& [text, message] : kBad) {
    EXPECT_THAT(AddressSet::Parse(text),
                IsError(Code::kInvalidArgument, HasSubstr(std::string(message))))
        << text;
  }
}

}  // namespace
}  // namespace sless::base
