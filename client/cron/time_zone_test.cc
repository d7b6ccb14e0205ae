#include "client/cron/time_zone.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "client/base/clock.h"
#include "client/base/testing/result_matchers.h"
#include "client/cron/zone_data.h"

namespace sless::cron {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using testing::_;
using testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(TimeZone, UtcNeedsNoFile) {
  const auto zone = TimeZone::Load("UTC", "/nonexistent");
  ASSERT_THAT(zone, IsOk());
  EXPECT_EQ(zone->At(0).offset_sec, 0);
  EXPECT_EQ(zone->At(INT64_MAX).end, INT64_MAX);
}

TEST(TimeZone, PeriodsMeet) {
  for (const char* name :
       {"Europe/Berlin", "Australia/Lord_Howe", "America/New_York", "Europe/Dublin",
        "Africa/Casablanca", "Asia/Kathmandu", "America/Nuuk", "Antarctica/Troll"}) {
    const auto zone = TimeZone::Load(name);
    ASSERT_THAT(zone, IsOk());
    int64_t t = -5'000'000'000;
    for (int i = 0; i < 2000 && t < 20'000'000'000; ++i) {
      const Period period = zone->At(t);
      ASSERT_LE(period.begin, t);
      ASSERT_GT(period.end, t);
      if (period.begin != INT64_MIN) {
        ASSERT_EQ(zone->At(period.begin - 1).end, period.begin) << name << " " << t;
      }
      if (period.end == INT64_MAX) break;
      ASSERT_EQ(zone->At(period.end - 1).offset_sec, period.offset_sec);
      t = period.end;
      ASSERT_EQ(zone->At(t).begin, t) << name;
    }
  }
}

// The C library reads the same files by its own code.
TEST(TimeZone, AgreesWithTheCLibrary) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int64_t> times(-2'000'000'000, 6'000'000'000);
  const char* before = getenv("TZ");
  const std::string saved = before ? before : "";
  for (const char* name :
       {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu",
        "Europe/Dublin", "Africa/Casablanca", "America/Sao_Paulo", "Pacific/Apia", "Asia/Gaza",
        "America/Nuuk", "Asia/Tehran", "Etc/GMT+5", "EST5EDT"}) {
    const auto zone = TimeZone::Load(name);
    ASSERT_THAT(zone, IsOk());
    setenv("TZ", name, 1);
    tzset();
    for (int i = 0; i < 3000; ++i) {
      const time_t t = times(random);
      struct tm local {};
      localtime_r(&t, &local);
      ASSERT_EQ(zone->At(t).offset_sec, local.tm_gmtoff) << name << " " << t;
    }
  }
  before ? setenv("TZ", saved.c_str(), 1) : unsetenv("TZ");
  tzset();
}

TEST(TimeZone, EveryZoneOfTheMachineIsRead) {
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kZoneInfoDir)) {
    const auto name = entry.path().lexically_relative(kZoneInfoDir).string();
    if (!entry.is_regular_file() || name.starts_with("right/") || name.starts_with("posix/"))
      continue;
    const auto bytes = ReadFile(entry.path());
    if (!bytes.starts_with("TZif")) continue;
    EXPECT_THAT(TimeZone::FromTzif(name, bytes), IsOk()) << name;
    ++read;
  }
  EXPECT_GT(read, 300);
}

struct NameCase {
  const char* name;
  std::string zone;
  const char* text;  // "" means fine
};
class TimeZoneName : public testing::TestWithParam<NameCase> {};
TEST_P(TimeZoneName, IsChecked) {
  const auto& [name, zone, text] = GetParam();
  const auto validated = ValidateTimeZone(zone);
  const auto loaded = TimeZone::Load(zone);
  if (!*text) {
    EXPECT_THAT(validated, IsOk());
    EXPECT_THAT(loaded, IsOk());
    return;
  }
  EXPECT_THAT(validated, IsError(Code::kInvalidArgument, HasSubstr(text)));
  EXPECT_THAT(loaded, IsError(Code::kInvalidArgument, HasSubstr(text)));
}
INSTANTIATE_TEST_SUITE_P(
    Cases, TimeZoneName,
    testing::Values(NameCase{"Berlin", "Europe/Berlin", ""}, NameCase{"Utc", "UTC", ""},
                    NameCase{"EtcUtc", "Etc/UTC", ""}, NameCase{"Plus", "Etc/GMT+5", ""},
                    NameCase{"Three", "America/Argentina/Buenos_Aires", ""},
                    NameCase{"Typo", "Europe/Berlyn", "did you mean \"Europe/Berlin\"?"},
                    NameCase{"Case", "europe/berlin", "did you mean \"Europe/Berlin\"?"},
                    NameCase{"City", "berlin", "did you mean \"Europe/Berlin\"?"},
                    NameCase{"WrongContinent", "Asia/London", "did you mean \"Europe/London\"?"},
                    NameCase{"Nonsense", "Middle/Earth_of_the_Shire", "unknown time zone"},
                    NameCase{"Empty", "", "not an IANA"},
                    NameCase{"Up", "../../etc/passwd", "not an IANA"},
                    NameCase{"InnerUp", "Europe/../UTC", "not an IANA"},
                    NameCase{"Absolute", "/etc/passwd", "not an IANA"},
                    NameCase{"Slash", "Europe/", "not an IANA"},
                    NameCase{"Folder", "Europe", "unknown time zone"},
                    NameCase{"NoZoneFile", "zone.tab", "not an IANA"},
                    NameCase{"TextFile", "leapseconds", "unknown time zone"},
                    NameCase{"Right", "right/UTC", "not an IANA"},
                    NameCase{"Localtime", "localtime", "not an IANA"},
                    NameCase{"Blank", "Europe/ Berlin", "not an IANA"},
                    NameCase{"Nul", std::string("UTC\0x", 5), "not an IANA"},
                    NameCase{"Long", std::string(5000, 'a'), "not an IANA"},
                    NameCase{"Posix", "CET-1CEST,M3.5.0,M10.5.0/3", "not an IANA"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TimeZone, AMachineWithoutZonesChecksTheGrammarOnly) {
  EXPECT_THAT(ValidateTimeZone("Europe/Berlin", "/nonexistent"), IsOk());
  EXPECT_THAT(ValidateTimeZone("../x", "/nonexistent"), IsError(Code::kInvalidArgument, _));
  EXPECT_THAT(TimeZone::Load("Europe/Berlin", "/nonexistent"),
              IsError(Code::kFailedPrecondition, HasSubstr("install the tzdata package")));
}

TEST(TimeZone, ABrokenFileIsTheMachinesFault) {
  std::string dir = (std::filesystem::temp_directory_path() / "sless-zones-XXXXXX").string();
  ASSERT_NE(::mkdtemp(dir.data()), nullptr);
  std::ofstream(dir + "/Broken") << "TZif2";
  EXPECT_THAT(TimeZone::Load("Broken", dir),
              IsError(Code::kFailedPrecondition, HasSubstr("not a sound time zone file")));
  std::filesystem::remove_all(dir);
}

TEST(Tzif, CutAnywhereIsAnError) {
  const auto bytes = ReadFile(std::string(kZoneInfoDir) + "/Australia/Lord_Howe");
  ASSERT_THAT(ReadTzif(bytes), IsOk());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string cut(bytes.data(),
                          length);  // a copy of its own, so that a read past its end is seen
    EXPECT_FALSE(ReadTzif(cut).has_value()) << length;
  }
}

TEST(Tzif, MutationsNeverReadOutside) {
  std::mt19937 random(7);
  for (const char* name : {"Europe/Berlin", "Asia/Kathmandu", "Africa/Casablanca", "UTC"}) {
    const auto bytes = ReadFile(std::string(kZoneInfoDir) + "/" + name);
    for (int i = 0; i < 3000; ++i) {
      std::string changed = bytes;
      for (unsigned n = 1 + random() % 4; n > 0; --n)
        changed[random() % changed.size()] = static_cast<char>(random());
      if (random() % 4 == 0) changed.resize(random() % changed.size());
      const auto zone = TimeZone::FromTzif("x", changed);
      if (!zone) continue;
      for (const int64_t t : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{1'800'000'000},
                              int64_t{5'000'000'000}, INT64_MAX}) {
        const Period period = zone->At(t);
        EXPECT_LE(period.begin, t);
        EXPECT_TRUE(period.end > t || period.end == INT64_MAX);
      }
    }
  }
}

struct RuleCase {
  const char* name;
  const char* rule;
  const char* text;  // "" means fine
};
class PosixRuleText : public testing::TestWithParam<RuleCase> {};
TEST_P(PosixRuleText, IsRead) {
  const auto rule = ParsePosixRule(GetParam().rule);
  if (!*GetParam().text) {
    EXPECT_THAT(rule, IsOk());
  } else {
    EXPECT_THAT(rule, IsError(Code::kInvalidArgument, HasSubstr(GetParam().text)));
  }
}
INSTANTIATE_TEST_SUITE_P(
    Cases, PosixRuleText,
    testing::Values(RuleCase{"Plain", "UTC0", ""},
                    RuleCase{"Berlin", "CET-1CEST,M3.5.0,M10.5.0/3", ""},
                    RuleCase{"Quoted", "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", ""},
                    RuleCase{"NegativeTime", "<-02>2<-01>,M3.5.0/-1,M10.5.0/0", ""},
                    RuleCase{"Julian", "EST5EDT,J60/2,J300/26:30:15", ""},
                    RuleCase{"AllYear", "EST5EDT,0/0,J365/25", ""},
                    RuleCase{"Empty", "", "abbreviation"}, RuleCase{"NoOffset", "CET", "no number"},
                    RuleCase{"Offset", "CET25", "no number"},
                    RuleCase{"NoDates", "CET-1CEST", "does not say"},
                    RuleCase{"OneDate", "CET-1CEST,M3.5.0", "does not say"},
                    RuleCase{"Month", "CET-1CEST,M13.5.0,M10.5.0", "1 to 12"},
                    RuleCase{"Week", "CET-1CEST,M3.6.0,M10.5.0", "1 to 5"},
                    RuleCase{"Tail", "CET-1CEST,M3.5.0,M10.5.0x", "after its end"},
                    RuleCase{"OpenQuote", "<CET-1", "'>'"},
                    RuleCase{"Time", "CET-1CEST,M3.5.0/168,M10.5.0", "0 to 167"},
                    RuleCase{"Short", "CE1", "abbreviation"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(PosixRuleAt, JulianDaysSkipTheLeapDay) {
  const auto rule = ParsePosixRule("XXX0YYY,J60/0,J61/0");
  ASSERT_THAT(rule, IsOk());
  const auto offset = [&](std::string_view text) {
    return rule
        ->At(std::chrono::duration_cast<std::chrono::seconds>(
                 base::ParseTime(text)->time_since_epoch())
                 .count())
        .offset_sec;
  };
  EXPECT_EQ(offset("2027-03-01T12:00:00Z"), 3600);
  EXPECT_EQ(offset("2028-02-29T12:00:00Z"), 0);
  EXPECT_EQ(offset("2028-03-01T12:00:00Z"), 3600);
  EXPECT_EQ(offset("2028-03-02T12:00:00Z"), 0);
}

}  // namespace
}  // namespace sless::cron
