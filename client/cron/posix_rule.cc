// The footer of zone files: POSIX TZ with the extensions of RFC 8536, section 3.3.1.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "client/base/strings.h"
#include "client/cron/calendar.h"
#include "client/cron/zone_data.h"

namespace sless::cron {
namespace {

using base::Code;
using base::Err;

// The calendar below counts years in 16 bits.
constexpr int64_t kMaxSeconds = int64_t{30'000} * 366 * kDay;

class RuleParser {
 public:
  explicit RuleParser(std::string_view text) : whole_(text), rest_(text) {}

  base::Result<PosixRule> Parse() {
    PosixRule rule;
    RETURN_IF_ERROR(Name());
    ASSIGN_OR_RETURN(const int64_t west, Time(24));
    rule.standard_offset_sec = -west;  // POSIX counts west of Greenwich
    if (rest_.empty()) return rule;
    RETURN_IF_ERROR(Name());
    rule.daylight_offset_sec = rule.standard_offset_sec + 3600;
    if (!rest_.empty() && rest_[0] != ',') {
      ASSIGN_OR_RETURN(const int64_t daylight_west, Time(24));
      rule.daylight_offset_sec = -daylight_west;
    }
    ASSIGN_OR_RETURN(rule.start, Date());
    ASSIGN_OR_RETURN(rule.end, Date());
    if (!rest_.empty()) return Wrong("has something after its end");
    return rule;
  }

 private:
  tl::unexpected<base::Error> Wrong(std::string_view what) const {
    return Err(Code::kInvalidArgument,
               fmt::format("the rule \"{}\" {}", base::Truncate(whole_, 80), what));
  }

  bool Take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  base::Status Name() {
    const bool quoted = Take('<');
    size_t length = 0;
    const auto fits = [&](char c) {
      const auto u = static_cast<unsigned char>(c);
      return std::isalpha(u) || (quoted && (std::isdigit(u) || c == '+' || c == '-'));
    };
    while (length < rest_.size() && fits(rest_[length])) ++length;
    if (length < 3) return Wrong("has no zone abbreviation where one belongs");
    rest_.remove_prefix(length);
    if (quoted && !Take('>')) return Wrong("has an abbreviation without its '>'");
    return base::Ok();
  }

  base::Result<int> Number(int min, int max) {
    size_t length = 0;
    int value = 0;
    while (length < rest_.size() && length < 4 &&
           std::isdigit(static_cast<unsigned char>(rest_[length]))) {
      value = value * 10 + (rest_[length++] - '0');
    }
    if (length == 0 || value < min || value > max)
      return Wrong(fmt::format("has no number from {} to {} where one belongs", min, max));
    rest_.remove_prefix(length);
    return value;
  }

  base::Result<int64_t> Time(int max_hours) {
    const bool minus = Take('-');
    if (!minus) Take('+');
    ASSIGN_OR_RETURN(const int hours, Number(0, max_hours));
    int minutes = 0, seconds = 0;
    if (Take(':')) {
      ASSIGN_OR_RETURN(minutes, Number(0, 59));
      if (Take(':')) {
        ASSIGN_OR_RETURN(seconds, Number(0, 59));
      }
    }
    const int64_t value = hours * 3600 + minutes * 60 + seconds;
    return minus ? -value : value;
  }

  base::Result<RuleDate> Date() {
    RuleDate date;
    if (!Take(',')) return Wrong("does not say when daylight saving time begins and ends");
    if (Take('M')) {
      date.form = RuleDate::Form::kMonthWeekDay;
      ASSIGN_OR_RETURN(date.month, Number(1, 12));
      if (!Take('.')) return Wrong("has a date without '.'");
      ASSIGN_OR_RETURN(date.week, Number(1, 5));
      if (!Take('.')) return Wrong("has a date without '.'");
      ASSIGN_OR_RETURN(date.day, Number(0, 6));
    } else if (Take('J')) {
      date.form = RuleDate::Form::kJulianNoLeap;
      ASSIGN_OR_RETURN(date.day, Number(1, 365));
    } else {
      ASSIGN_OR_RETURN(date.day, Number(0, 365));
    }
    if (Take('/')) {
      ASSIGN_OR_RETURN(date.time_sec, Time(167));
    }
    return date;
  }

  std::string_view whole_;
  std::string_view rest_;
};

// Wall clock seconds (as if UTC) of a rule's date in a year.
int64_t LocalTimeOf(const RuleDate& date, int64_t year) {
  int64_t days = 0;
  switch (date.form) {
    case RuleDate::Form::kDayOfYear:
      days = DaysOf(year, 1, 1) + date.day;
      break;
    case RuleDate::Form::kJulianNoLeap: {
      const bool after_leap_day =
          std::chrono::year(static_cast<int>(year)).is_leap() && date.day >= 60;
      days = DaysOf(year, 1, 1) + date.day - 1 + (after_leap_day ? 1 : 0);
      break;
    }
    case RuleDate::Form::kMonthWeekDay: {
      const int64_t first = DaysOf(year, date.month, 1);
      days = first + (date.day - WeekdayOf(first) + 7) % 7 + 7 * (date.week - 1);
      const int64_t next_month =
          date.month == 12 ? DaysOf(year + 1, 1, 1) : DaysOf(year, date.month + 1, 1);
      while (days >= next_month) days -= 7;  // at most once: week 5 of a month that has four
      break;
    }
  }
  return days * kDay + date.time_sec;
}

}  // namespace

base::Result<PosixRule> ParsePosixRule(std::string_view text) { return RuleParser(text).Parse(); }

Period PosixRule::At(int64_t unix_seconds) const {
  Period period;
  period.offset_sec = standard_offset_sec;
  if (!daylight_offset_sec || unix_seconds > kMaxSeconds || unix_seconds < -kMaxSeconds)
    return period;

  // The changes of the years around: a date's time may reach a week into the next or last year.
  const auto year = static_cast<int>(DateOf(FloorDiv(unix_seconds, kDay)).year());
  std::array<Transition, 10> changes;
  size_t count = 0;
  for (int64_t y = year - 2; y <= year + 2; ++y) {
    changes[count++] = {LocalTimeOf(start, y) - standard_offset_sec, *daylight_offset_sec};
    changes[count++] = {LocalTimeOf(end, y) - *daylight_offset_sec, standard_offset_sec};
  }
  // Where one time ends as the other begins (daylight saving all year), the beginning counts.
  std::stable_sort(changes.begin(), changes.end(), [&](const Transition& a, const Transition& b) {
    return a.at != b.at
               ? a.at < b.at
               : a.offset_sec == standard_offset_sec && b.offset_sec != standard_offset_sec;
  });
  const auto next =
      std::upper_bound(changes.begin(), changes.end(), unix_seconds,
                       [](int64_t t, const Transition& change) { return t < change.at; });
  if (next != changes.begin()) {
    period.begin = std::prev(next)->at;
    period.offset_sec = std::prev(next)->offset_sec;
  }
  if (next != changes.end()) period.end = next->at;
  return period;
}

}  // namespace sless::cron
