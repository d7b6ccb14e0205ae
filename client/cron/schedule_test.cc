#include "client/cron/schedule.h"

#include <gmock/gmock.h>

#include <chrono>
#include <iterator>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "client/base/testing/result_matchers.h"

namespace sless::cron {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using base::TimePoint;
using testing::HasSubstr;

TimePoint Time(std::string_view text) { return base::ParseTime(text).value(); }

// The next `count` fires as RFC 3339 without seconds: "2026-03-29T01:00Z …".
std::string Fires(std::string_view schedule, std::string_view zone_name, std::string_view after,
                  int count) {
  const auto parsed = Schedule::Parse(schedule);
  const auto zone = TimeZone::Load(zone_name);
  if (!parsed || !zone) return "broken test";
  std::string fires;
  TimePoint at = Time(after);
  for (int i = 0; i < count; ++i) {
    const auto next = parsed->Next(at, *zone);
    if (!next) return fires + "none";
    at = *next;
    fires += (i ? " " : "") + base::FormatTime(at).substr(0, 16) + "Z";
  }
  return fires;
}

struct GoodCase {
  const char* name;
  const char* schedule;
  const char* after;
  const char* fires;
};
class ScheduleNext : public testing::TestWithParam<GoodCase> {};
TEST_P(ScheduleNext, InUtc) {
  EXPECT_EQ(Fires(GetParam().schedule, "UTC", GetParam().after, 3), GetParam().fires);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, ScheduleNext,
    testing::Values(GoodCase{"EveryMinute", "* * * * *", "2026-01-01T00:00:00Z",
                             "2026-01-01T00:01Z 2026-01-01T00:02Z 2026-01-01T00:03Z"},
                    GoodCase{"StrictlyLater", "0 0 * * *", "2026-01-01T00:00:00Z",
                             "2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-04T00:00Z"},
                    GoodCase{"InsideAMinute", "1 * * * *", "2026-01-01T00:00:59.999Z",
                             "2026-01-01T00:01Z 2026-01-01T01:01Z 2026-01-01T02:01Z"},
                    GoodCase{"FractionBefore", "0 0 * * *", "2025-12-31T23:59:59.5Z",
                             "2026-01-01T00:00Z 2026-01-02T00:00Z 2026-01-03T00:00Z"},
                    GoodCase{"Step", "*/25 12 * * *", "2026-01-01T00:00:00Z",
                             "2026-01-01T12:00Z 2026-01-01T12:25Z 2026-01-01T12:50Z"},
                    GoodCase{"RangeStep", "10-40/15 5 * * *", "2026-01-01T00:00:00Z",
                             "2026-01-01T05:10Z 2026-01-01T05:25Z 2026-01-01T05:40Z"},
                    GoodCase{"List", "5,1,3 0 * * *", "2026-01-01T00:00:00Z",
                             "2026-01-01T00:01Z 2026-01-01T00:03Z 2026-01-01T00:05Z"},
                    GoodCase{"Month", "0 0 1 6,feb *", "2026-01-01T00:00:00Z",
                             "2026-02-01T00:00Z 2026-06-01T00:00Z 2027-02-01T00:00Z"},
                    GoodCase{"MonthRange", "0 0 1 Nov-DEC *", "2026-01-01T00:00:00Z",
                             "2026-11-01T00:00Z 2026-12-01T00:00Z 2027-11-01T00:00Z"},
                    GoodCase{"Weekdays", "30 9 * * mon-fri", "2026-01-01T12:00:00Z",
                             "2026-01-02T09:30Z 2026-01-05T09:30Z 2026-01-06T09:30Z"},
                    GoodCase{"SundayZero", "0 0 * * 0", "2026-01-01T00:00:00Z",
                             "2026-01-04T00:00Z 2026-01-11T00:00Z 2026-01-18T00:00Z"},
                    GoodCase{"SundaySeven", "0 0 * * 7", "2026-01-01T00:00:00Z",
                             "2026-01-04T00:00Z 2026-01-11T00:00Z 2026-01-18T00:00Z"},
                    GoodCase{"FridayToSeven", "0 0 * * 5-7", "2026-01-01T00:00:00Z",
                             "2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-04T00:00Z"},
                    GoodCase{"SatToSun", "0 0 * * SAT-SUN", "2026-01-01T00:00:00Z",
                             "2026-01-03T00:00Z 2026-01-04T00:00Z 2026-01-10T00:00Z"},
                    GoodCase{"ZeroToSeven", "0 0 * * 0-7", "2026-01-01T00:00:00Z",
                             "2026-01-02T00:00Z 2026-01-03T00:00Z 2026-01-04T00:00Z"},
                    GoodCase{"EitherDay", "0 0 13 * FRI", "2026-01-01T00:00:00Z",
                             "2026-01-02T00:00Z 2026-01-09T00:00Z 2026-01-13T00:00Z"},
                    GoodCase{"AllDaysNamed", "0 0 1-31 * FRI", "2026-01-01T00:00:00Z",
                             "2026-01-02T00:00Z 2026-01-09T00:00Z 2026-01-16T00:00Z"},
                    GoodCase{"StepIsRestricted", "0 0 */15 * FRI", "2026-01-03T00:00:00Z",
                             "2026-01-09T00:00Z 2026-01-16T00:00Z 2026-01-23T00:00Z"},
                    GoodCase{"EitherDayInMonth", "0 0 30 2 MON", "2026-01-01T00:00:00Z",
                             "2026-02-02T00:00Z 2026-02-09T00:00Z 2026-02-16T00:00Z"},
                    GoodCase{"LeapDay", "0 0 29 2 *", "2026-01-01T00:00:00Z",
                             "2028-02-29T00:00Z 2032-02-29T00:00Z 2036-02-29T00:00Z"},
                    GoodCase{"LeapDayOverACentury", "0 0 29 2 *", "2096-03-01T00:00:00Z",
                             "2104-02-29T00:00Z 2108-02-29T00:00Z 2112-02-29T00:00Z"},
                    GoodCase{"Day31", "0 0 31 * *", "2026-01-31T00:00:00Z",
                             "2026-03-31T00:00Z 2026-05-31T00:00Z 2026-07-31T00:00Z"},
                    GoodCase{"Hourly", "@hourly", "2026-01-01T00:30:00Z",
                             "2026-01-01T01:00Z 2026-01-01T02:00Z 2026-01-01T03:00Z"},
                    GoodCase{"Weekly", "@weekly", "2026-01-01T00:00:00Z",
                             "2026-01-04T00:00Z 2026-01-11T00:00Z 2026-01-18T00:00Z"},
                    GoodCase{"Monthly", "@monthly", "2026-01-01T00:00:00Z",
                             "2026-02-01T00:00Z 2026-03-01T00:00Z 2026-04-01T00:00Z"},
                    GoodCase{"Yearly", "@yearly", "2026-01-01T00:00:00Z",
                             "2027-01-01T00:00Z 2028-01-01T00:00Z 2029-01-01T00:00Z"},
                    GoodCase{"Blanks", "  0\t12   * *  * ", "2026-01-01T00:00:00Z",
                             "2026-01-01T12:00Z 2026-01-02T12:00Z 2026-01-03T12:00Z"},
                    GoodCase{"BeforeTheEpoch", "0 0 1 1 *", "1900-06-01T00:00:00Z",
                             "1901-01-01T00:00Z 1902-01-01T00:00Z 1903-01-01T00:00Z"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Schedule, NicknamesAreTheirFields) {
  EXPECT_EQ(*Schedule::Parse("@daily"), *Schedule::Parse("0 0 * * *"));
  EXPECT_EQ(*Schedule::Parse("@midnight"), *Schedule::Parse("0 0 * * *"));
  EXPECT_EQ(*Schedule::Parse("@annually"), *Schedule::Parse("0 0 1 1 *"));
}

struct BadCase {
  const char* name;
  std::string schedule;
  const char* text;
};
class ScheduleParse : public testing::TestWithParam<BadCase> {};
TEST_P(ScheduleParse, NamesWhatIsWrong) {
  EXPECT_THAT(Schedule::Parse(GetParam().schedule),
              IsError(Code::kInvalidArgument, HasSubstr(GetParam().text)));
  EXPECT_FALSE(ValidateSchedule(GetParam().schedule).has_value());
}
INSTANTIATE_TEST_SUITE_P(
    Cases, ScheduleParse,
    testing::Values(
        BadCase{"Empty", "", "5 fields (minute, hour, day of month, month, day of week), got 0"},
        BadCase{"Four", "* * * *", "got 4"},
        BadCase{"Six", "0 * * * * *", "got 6; seconds and years are not supported"},
        BadCase{"Zone", "TZ=UTC 0 0 * * *", "the time zone is a setting of its own"},
        BadCase{"Minute", "60 * * * *", "\"minute\": \"60\" is out of range; allowed are 0 to 59"},
        BadCase{"Hour", "0 24 * * *", "\"hour\": \"24\" is out of range; allowed are 0 to 23"},
        BadCase{"DayZero", "0 0 0 * *",
                "\"day of month\": \"0\" is out of range; allowed are 1 to 31"},
        BadCase{"Day32", "0 0 1-32 * *", "\"day of month\": \"1-32\" is out of range"},
        BadCase{"Month13", "0 0 1 13 *",
                "\"month\": \"13\" is out of range; allowed are 1 to 12 or JAN to DEC"},
        BadCase{"Weekday8", "0 0 * * 8",
                "\"day of week\": \"8\" is out of range; allowed are 0 to 7 or SUN to SAT"},
        BadCase{"Name", "0 0 * * FOO", "\"day of week\": \"FOO\" is not understood"},
        BadCase{"LongName", "0 0 * * MONDAY", "not understood"},
        BadCase{"MonthNameInDays", "0 0 JAN * *", "\"day of month\": \"JAN\""},
        BadCase{"Backwards", "0 22-5 * * *", "\"hour\": \"22-5\" runs backwards; write two items"},
        BadCase{"StepZero", "*/0 * * * *", "step out of range; allowed are 1 to 59"},
        BadCase{"StepLarge", "*/60 * * * *", "step out of range"},
        BadCase{"StepEmpty", "*/ * * * *", "step out of range"},
        BadCase{"StepTwice", "*/2/3 * * * *", "step out of range"},
        BadCase{"StepAlone", "5/15 * * * *", "write 5-59/15"},
        BadCase{"EmptyItem", "1,,2 * * * *", "has an empty item"},
        BadCase{"Comma", ", * * * *", "has an empty item"},
        BadCase{"OpenRange", "1- * * * *", "not understood"},
        BadCase{"Negative", "-1 * * * *", "not understood"},
        BadCase{"Plus", "+1 * * * *", "not understood"},
        BadCase{"Huge", "99999999999999999999 * * * *", "not understood"},
        BadCase{"Question", "0 0 ? * *", "not understood"},
        BadCase{"Last", "0 0 L * *", "not understood"},
        BadCase{"Hash", "0 0 * * 1#2", "not understood"},
        BadCase{"Fraction", "1.5 * * * *", "not understood"},
        BadCase{"Never30Feb", "0 0 30 2 *", "can never fire: no month of \"2\" has a day \"30\""},
        BadCase{"Never31", "0 0 31 4,6,SEP,11 *", "can never fire"},
        BadCase{"Nickname", "@dayly", "did you mean \"@daily\"?"},
        BadCase{"Reboot", "@reboot", "is not one of @hourly"},
        BadCase{"NicknameCase", "@Daily", "did you mean \"@daily\"?"},
        BadCase{"Long", std::string(2000, '*'), "at most 1000 bytes"},
        BadCase{"Nul", std::string("0 0 * *\0 *", 10), "not understood"},
        BadCase{"Newline", "0 0\n* * *", "got 4"}),
    [](const auto& info) { return std::string(info.param.name); });

// 2026: Berlin skips 02:00-03:00 on 29 March (01:00Z), repeats 02:00-03:00 on 25 October (01:00Z).
TEST(ScheduleDst, ASkippedTimeFiresOnceAfterTheGap) {
  EXPECT_EQ(Fires("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 3),
            "2026-03-28T01:30Z 2026-03-29T01:00Z 2026-03-30T00:30Z");
  EXPECT_EQ(Fires("*/15 2 * * *", "Europe/Berlin", "2026-03-28T01:40:00Z", 3),
            "2026-03-28T01:45Z 2026-03-29T01:00Z 2026-03-30T00:00Z");
  EXPECT_EQ(Fires("0 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2),
            "2026-03-29T01:00Z 2026-03-30T00:00Z");
  EXPECT_EQ(Fires("10 2,3 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3),
            "2026-03-29T01:00Z 2026-03-29T01:10Z 2026-03-30T00:10Z");
  EXPECT_EQ(Fires("0 */2 * * *", "Europe/Berlin", "2026-03-28T23:00:00Z", 3),
            "2026-03-29T01:00Z 2026-03-29T02:00Z 2026-03-29T04:00Z");
}

TEST(ScheduleDst, AGapOnADayThatDoesNotMatchFiresNothing) {
  EXPECT_EQ(Fires("30 2 * * MON", "Europe/Berlin", "2026-03-28T00:00:00Z", 1), "2026-03-30T00:30Z");
}

TEST(ScheduleDst, ARepeatedTimeFiresTheFirstTime) {
  EXPECT_EQ(Fires("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            "2026-10-25T00:30Z 2026-10-26T01:30Z");
  EXPECT_EQ(Fires("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z", 1),
            "2026-10-26T01:30Z");  // asked in the repeated hour
  EXPECT_EQ(Fires("30 2 * * *", "Europe/Berlin", "2026-10-25T01:00:00Z", 1),
            "2026-10-26T01:30Z");  // asked at the change
  EXPECT_EQ(Fires("0 2,3 * * *", "Europe/Berlin", "2026-10-24T23:00:00Z", 3),
            "2026-10-25T00:00Z 2026-10-25T02:00Z 2026-10-26T01:00Z");
}

TEST(ScheduleDst, EveryHourGoesByElapsedTime) {
  EXPECT_EQ(Fires("30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 3),
            "2026-03-29T00:30Z 2026-03-29T01:30Z 2026-03-29T02:30Z");
  EXPECT_EQ(Fires("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3),
            "2026-10-25T00:30Z 2026-10-25T01:30Z 2026-10-25T02:30Z");
  EXPECT_EQ(Fires("*/30 0-23 * * *", "Europe/Berlin", "2026-10-25T00:45:00Z", 3),
            "2026-10-25T01:00Z 2026-10-25T01:30Z 2026-10-25T02:00Z");
}

TEST(ScheduleDst, NewYork) {
  // 2026-03-08 07:00Z: 02:00 to 03:00 skipped; 2026-11-01 06:00Z: 01:00 to 02:00 repeated.
  EXPECT_EQ(Fires("5 2 * * *", "America/New_York", "2026-03-07T12:00:00Z", 2),
            "2026-03-08T07:00Z 2026-03-09T06:05Z");
  EXPECT_EQ(Fires("5 1 * * *", "America/New_York", "2026-10-31T12:00:00Z", 2),
            "2026-11-01T05:05Z 2026-11-02T06:05Z");
}

TEST(ScheduleDst, LordHoweChangesByHalfAnHour) {
  // 2026-10-03 15:30Z: 02:00 to 02:30 skipped; 2026-04-04 15:00Z: 01:30 to 02:00 repeated.
  EXPECT_EQ(Fires("15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 2),
            "2026-10-03T15:30Z 2026-10-04T15:15Z");
  EXPECT_EQ(Fires("45 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", 2),
            "2026-10-03T15:45Z 2026-10-04T15:45Z");
  EXPECT_EQ(Fires("45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z", 2),
            "2026-04-04T14:45Z 2026-04-05T15:15Z");
  EXPECT_EQ(Fires("45 * * * *", "Australia/Lord_Howe", "2026-04-04T14:00:00Z", 3),
            "2026-04-04T14:45Z 2026-04-04T15:15Z 2026-04-04T16:15Z");
}

TEST(ScheduleDst, KathmanduAndUtcHaveNone) {
  EXPECT_EQ(Fires("0 9 * * *", "Asia/Kathmandu", "2026-01-01T00:00:00Z", 2),
            "2026-01-01T03:15Z 2026-01-02T03:15Z");
  EXPECT_EQ(Fires("0 9 * * *", "UTC", "2026-01-01T00:00:00Z", 2),
            "2026-01-01T09:00Z 2026-01-02T09:00Z");
}

TEST(ScheduleDst, AWholeSkippedDay) {
  // Samoa had no 30 December 2011; midnight of the 31st is 2011-12-30T10:00Z.
  EXPECT_EQ(Fires("0 9 * * *", "Pacific/Apia", "2011-12-29T00:00:00Z", 3),
            "2011-12-29T19:00Z 2011-12-30T10:00Z 2011-12-30T19:00Z");
}

TEST(Schedule, TheEndsOfTimeAreSafe) {
  const auto berlin = TimeZone::Load("Europe/Berlin");
  ASSERT_THAT(berlin, IsOk());
  for (const char* text : {"* * * * *", "0 2 29 2 *", "30 2 * * *"}) {
    const auto schedule = Schedule::Parse(text);
    EXPECT_EQ(schedule->Next(TimePoint::max(), *berlin), std::nullopt);
    EXPECT_EQ(schedule->Next(TimePoint::max() - std::chrono::seconds(1), *berlin), std::nullopt);
    EXPECT_TRUE(schedule->Next(TimePoint::min(), *berlin).has_value());
  }
}

TEST(Schedule, AnyTextIsRefusedOrFires) {
  constexpr std::string_view kItems[] = {"*",   "*/2", "0",   "7",     "31",     "2",
                                         "59",  "29",  "1-5", "30-31", "2-12/5", "MON",
                                         "feb", "60",  "-",   "/",     ""};
  std::mt19937 random(3);
  const auto lord_howe = TimeZone::Load("Australia/Lord_Howe");
  ASSERT_THAT(lord_howe, IsOk());
  int good = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (int field = 0; field < 5; ++field) {
      text += kItems[random() % std::size(kItems)];
      if (random() % 4 == 0) text += "," + std::string(kItems[random() % std::size(kItems)]);
      text += ' ';
    }
    const auto schedule = Schedule::Parse(text);
    if (!schedule) continue;
    ++good;
    const auto after = Time("2026-01-01T00:00:00Z") + std::chrono::hours(random() % 100'000);
    const auto next = schedule->Next(after, *lord_howe);
    ASSERT_TRUE(next.has_value()) << text;
    ASSERT_GT(*next, after) << text;
  }
  EXPECT_GT(good, 100);
}

// The rule of the header, minute by minute, from the fields as bits.
struct Bits {
  uint64_t minutes, hours, days, weekdays;
};

uint64_t Range(int first, int last, int step = 1) {
  uint64_t bits = 0;
  for (int i = first; i <= last; i += step) bits |= uint64_t{1} << i;
  return bits;
}

bool Matches(const Bits& bits, int64_t local) {
  const int64_t day = (local - (local % 86400 + 86400) % 86400) / 86400;
  const std::chrono::sys_days date{std::chrono::days(day)};
  const auto minute = static_cast<int>((local - day * 86400) / 60);
  const auto day_of_month = static_cast<unsigned>(std::chrono::year_month_day(date).day());
  return (bits.minutes >> (minute % 60) & 1) && (bits.hours >> (minute / 60) & 1) &&
         (bits.days >> day_of_month & 1) &&
         (bits.weekdays >> std::chrono::weekday(date).c_encoding() & 1);
}

std::set<int64_t> BruteForce(const Bits& bits, const TimeZone& zone, int64_t from, int64_t to) {
  const bool every_hour = bits.hours == Range(0, 23);
  std::set<int64_t> fires;
  int64_t shown = from - 60 + zone.At(from - 60).offset_sec;  // the latest wall clock minute so far
  for (int64_t t = from; t < to; t += 60) {
    const int64_t local = t + zone.At(t).offset_sec;
    bool fire = Matches(bits, local) && (every_hour || local > shown);
    for (int64_t skipped = shown + 60; !every_hour && skipped < local; skipped += 60)
      fire = fire || Matches(bits, skipped);
    if (fire) fires.insert(t);
    shown = std::max(shown, local);
  }
  return fires;
}

std::set<int64_t> ByNext(const Schedule& schedule, const TimeZone& zone, int64_t from, int64_t to) {
  std::set<int64_t> fires;
  auto at = TimePoint(std::chrono::seconds(from - 1));
  for (;;) {
    const auto next = schedule.Next(at, zone);
    if (!next) return fires;
    const int64_t t =
        std::chrono::duration_cast<std::chrono::seconds>(next->time_since_epoch()).count();
    if (t >= to || !fires.insert(t).second) return fires;
    at = *next;
  }
}

// The three days around each change of offset: in the table of the zone, and after its end, where
// the rule of its footer counts.
TEST(ScheduleOracle, AgreesMinuteByMinute) {
  const std::vector<std::pair<const char*, Bits>> schedules = {
      {"*/20 * * * *", {Range(0, 59, 20), Range(0, 23), Range(1, 31), Range(0, 6)}},
      {"10,40 1-3 * * *",
       {uint64_t{1} << 10 | uint64_t{1} << 40, Range(1, 3), Range(1, 31), Range(0, 6)}},
      {"0 */3 * * *", {Range(0, 0), Range(0, 23, 3), Range(1, 31), Range(0, 6)}},
      {"30 2 * * SUN", {Range(30, 30), Range(2, 2), Range(1, 31), Range(0, 0)}},
      {"59 0,2 */2 * *", {Range(59, 59), Range(0, 2, 2), Range(1, 31, 2), Range(0, 6)}},
      {"45 * * * 0,6", {Range(45, 45), Range(0, 23), Range(1, 31), Range(0, 6, 6)}},
  };
  int changes = 0;
  for (const char* name :
       {"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC",
        "Africa/Casablanca", "Europe/Dublin", "America/Nuuk", "Pacific/Apia"}) {
    const auto zone = TimeZone::Load(name);
    ASSERT_THAT(zone, IsOk());
    for (const char* start :
         {"2011-06-01T00:00:00Z", "2026-01-01T00:00:00Z", "2043-01-01T00:00:00Z"}) {
      const int64_t first =
          std::chrono::duration_cast<std::chrono::seconds>(Time(start).time_since_epoch()).count();
      for (int64_t change = first; change < first + 366 * 86400; change = zone->At(change).end) {
        const int64_t from = change - change % 60 - 86400, to = from + 3 * 86400;
        for (const auto& [text, bits] : schedules) {
          ASSERT_EQ(ByNext(*Schedule::Parse(text), *zone, from, to),
                    BruteForce(bits, *zone, from, to))
              << name << " " << text << " " << change;
        }
        ++changes;
        if (zone->At(change).end == INT64_MAX) break;
      }
    }
  }
  EXPECT_GT(changes, 50);
}

}  // namespace
}  // namespace sless::cron
