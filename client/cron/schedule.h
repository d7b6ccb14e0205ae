#pragma once

#include <bitset>
#include <optional>
#include <string_view>

#include "client/base/clock.h"
#include "client/base/result.h"
#include "client/cron/time_zone.h"

namespace sless::cron {

/// When to fire: five fields as in POSIX crontab (minute hour day-of-month month day-of-week), each
/// `*`, a value, a range `a-b`, a step `*/n` or `a-b/n`, or a list of these; months and weekdays
/// also as JAN…DEC and SUN…SAT in any case; 0 and 7 are Sunday. Or one of @hourly @daily @midnight
/// @weekly @monthly @yearly @annually.
///
/// Days: where day-of-month and day-of-week are both restricted, a day that matches either fires
/// (POSIX). A field is restricted unless it names all its values, so `*` and `1-31` are not, and
/// `*/2` is.
///
/// Daylight saving time, by the hour field:
///   * All 24 hours (`*`, `*/1`, `0-23`): fires whenever the wall clock shows a matching minute. A
///   repeated hour fires again, a
///     skipped one does not fire; so `*/15 * * * *` is every 15 minutes of real time on such days
///     too.
///   * Anything else (`30 2 * * *`, `0 */2 * * *`): every matching wall clock time fires once.
///   Times in a gap fire together, once, at
///     the first minute after the gap; of a repeated time only the first one fires.
///
/// A value; const methods from any thread.
class Schedule {
 public:
  /// Error: kInvalidArgument; names the field, the value and what is allowed. A schedule that can
  /// never fire (30 February) is one too.
  static base::Result<Schedule> Parse(std::string_view text);

  /// The first fire later than `after`, on a whole second (a whole minute of the wall clock but for
  /// a gap of broken minutes). nullopt: none within 40 years, which no schedule that Parse takes
  /// does in a zone of today.
  std::optional<base::TimePoint> Next(base::TimePoint after, const TimeZone& zone) const;

  bool operator==(const Schedule&) const = default;

 private:
  bool DayMatches(int64_t days) const;
  bool EveryHour() const { return hours_.all(); }
  std::optional<int64_t> FirstLocal(int64_t from, int64_t to) const;

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;     // 1 to 31
  std::bitset<13> months_;   // 1 to 12
  std::bitset<7> weekdays_;  // 0 is Sunday
  bool days_restricted_ = false;
  bool weekdays_restricted_ = false;
};

/// Schedule::Parse without the schedule.
base::Status ValidateSchedule(std::string_view text);

}  // namespace sless::cron
