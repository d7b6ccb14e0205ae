#include "client/cron/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "client/base/strings.h"
#include "client/cron/calendar.h"
#include "client/cron/schedule_field.h"

namespace sless::cron {
namespace {

using base::Code;
using base::Err;

constexpr size_t kMaxText = 1000;
// 29 February can be eight years away (1896 to 1904, 2096 to 2104); the rest is room for odd zones.
constexpr int64_t kHorizon = 40 * 366 * kDay;

constexpr std::array<std::string_view, 12> kMonths{"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                                   "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::array<std::string_view, 7> kWeekdays{"SUN", "MON", "TUE", "WED",
                                                    "THU", "FRI", "SAT"};
constexpr std::array<int, 12> kLongestMonth{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

constexpr FieldRule kMinute{"minute", 0, 59, {}};
constexpr FieldRule kHour{"hour", 0, 23, {}};
constexpr FieldRule kDayOfMonth{"day of month", 1, 31, {}};
constexpr FieldRule kMonth{"month", 1, 12, kMonths};
constexpr FieldRule kDayOfWeek{"day of week", 0, 7, kWeekdays, true};

constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kNicknames{
    {{"@hourly", "0 * * * *"},
     {"@daily", "0 0 * * *"},
     {"@midnight", "0 0 * * *"},
     {"@weekly", "0 0 * * 0"},
     {"@monthly", "0 0 1 * *"},
     {"@yearly", "0 0 1 1 *"},
     {"@annually", "0 0 1 1 *"}}};

std::vector<std::string> Words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : text) {
    if (c != ' ' && c != '\t') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  return words;
}

base::Result<std::string_view> Expand(std::string_view text) {
  if (!text.starts_with('@')) return text;
  std::vector<std::string> names;
  for (const auto& [name, fields] : kNicknames) {
    if (text == name) return fields;
    names.emplace_back(name);
  }
  const std::string near = base::Nearest(text, names);
  return Err(
      Code::kInvalidArgument,
      fmt::format(
          "\"{}\" is not one of {}{}", base::Truncate(text, 40), base::Join(names, " "),
          near.empty() ? " (or write five fields)" : fmt::format("; did you mean \"{}\"?", near)));
}

base::Status CheckCount(const std::vector<std::string>& words) {
  if (words.size() == 5) return base::Ok();
  std::string hint;
  if (!words.empty() && base::Contains(words[0], '=')) {
    hint = "; the time zone is a setting of its own";
  } else if (words.size() == 6) {
    hint = "; seconds and years are not supported";
  }
  return Err(
      Code::kInvalidArgument,
      fmt::format(
          "a cron schedule has 5 fields (minute, hour, day of month, month, day of week), got {}{}",
          words.size(), hint));
}

// Is there a day of the month in one of the months?
bool CanFire(const std::bitset<32>& days, const std::bitset<13>& months) {
  for (int month = 1; month <= 12; ++month) {
    for (int day = 1; months[month] && day <= kLongestMonth[month - 1]; ++day) {
      if (days[day]) return true;
    }
  }
  return false;
}

constexpr int64_t CeilToMinute(int64_t seconds) { return -FloorDiv(-seconds, 60) * 60; }

}  // namespace

base::Result<Schedule> Schedule::Parse(std::string_view text) {
  if (text.size() > kMaxText)
    return Err(Code::kInvalidArgument,
               fmt::format("a cron schedule has at most {} bytes", kMaxText));
  ASSIGN_OR_RETURN(const auto fields, Expand(base::Trim(text)));
  const auto words = Words(fields);
  RETURN_IF_ERROR(CheckCount(words));
  ASSIGN_OR_RETURN(const uint64_t minutes, ParseField(words[0], kMinute));
  ASSIGN_OR_RETURN(const uint64_t hours, ParseField(words[1], kHour));
  ASSIGN_OR_RETURN(const uint64_t days, ParseField(words[2], kDayOfMonth));
  ASSIGN_OR_RETURN(const uint64_t months, ParseField(words[3], kMonth));
  ASSIGN_OR_RETURN(const uint64_t weekdays, ParseField(words[4], kDayOfWeek));

  Schedule schedule;
  schedule.minutes_ = minutes;
  schedule.hours_ = hours;
  schedule.days_ = days;
  schedule.months_ = months;
  schedule.weekdays_ = weekdays;
  schedule.days_restricted_ = schedule.days_.count() < 31;
  schedule.weekdays_restricted_ = !schedule.weekdays_.all();
  if (!schedule.weekdays_restricted_ && !CanFire(schedule.days_, schedule.months_)) {
    return Err(Code::kInvalidArgument,
               fmt::format("the schedule can never fire: no month of \"{}\" has a day \"{}\"",
                           words[3], words[2]));
  }
  return schedule;
}

bool Schedule::DayMatches(int64_t days) const {
  const auto date = DateOf(days);
  if (!months_[static_cast<unsigned>(date.month())]) return false;
  const bool day = days_[static_cast<unsigned>(date.day())], weekday = weekdays_[WeekdayOf(days)];
  return days_restricted_ && weekdays_restricted_ ? day || weekday : day && weekday;
}

// The first matching wall clock minute in [from, to), as seconds.
std::optional<int64_t> Schedule::FirstLocal(int64_t from, int64_t to) const {
  from = CeilToMinute(from);
  int64_t day = FloorDiv(from, kDay);
  auto minute = static_cast<size_t>((from - day * kDay) / 60);
  for (; day * kDay < to; ++day, minute = 0) {  // ends: `to` is at most kHorizon away
    const auto date = DateOf(day);
    if (!months_[static_cast<unsigned>(date.month())]) {  // on to the last day of the month
      day = (std::chrono::sys_days(date.year() / date.month() / std::chrono::last))
                .time_since_epoch()
                .count();
      continue;
    }
    if (!DayMatches(day)) continue;
    for (size_t hour = minute / 60; hour < 24; ++hour) {
      if (!hours_[hour]) continue;
      for (size_t m = hour == minute / 60 ? minute % 60 : 0; m < 60; ++m) {
        if (!minutes_[m]) continue;
        const int64_t found = day * kDay + static_cast<int64_t>(hour * 60 + m) * 60;
        return found < to ? std::optional(found) : std::nullopt;
      }
    }
  }
  return std::nullopt;
}

std::optional<base::TimePoint> Schedule::Next(base::TimePoint after, const TimeZone& zone) const {
  using std::chrono::floor;
  using std::chrono::seconds;
  const auto at = [](int64_t unix_seconds) { return base::TimePoint(seconds(unix_seconds)); };
  int64_t from = floor<seconds>(after).time_since_epoch().count() + 1;
  const int64_t horizon =
      std::min(from + kHorizon, floor<seconds>(base::TimePoint::max()).time_since_epoch().count());

  while (from < horizon) {  // one turn for each stretch of time with one offset
    const Period now = zone.At(from);
    const int64_t end = std::min(now.end, horizon);
    int64_t local = from + now.offset_sec;
    if (!EveryHour() && now.begin != INT64_MIN) {
      const int64_t offset_before = zone.At(now.begin - 1).offset_sec;
      const int64_t shown_until = now.begin + offset_before,
                    shown_from = now.begin + now.offset_sec;
      if (shown_from > shown_until) {  // a gap: what was skipped fires at its end
        const int64_t fire = CeilToMinute(shown_from) - now.offset_sec;
        if (fire >= from && fire < end && FirstLocal(shown_until, shown_from)) return at(fire);
      }
      local = std::max(local, shown_until);  // what is shown again has fired
    }
    if (const auto found = FirstLocal(local, end + now.offset_sec))
      return at(*found - now.offset_sec);
    from = end;
  }
  return std::nullopt;
}

base::Status ValidateSchedule(std::string_view text) {
  auto schedule = Schedule::Parse(text);
  if (!schedule) return Err(std::move(schedule).error());
  return base::Ok();
}

}  // namespace sless::cron
