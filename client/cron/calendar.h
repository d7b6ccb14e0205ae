#pragma once

// The civil calendar as numbers; for this room only. Days count from 1970-01-01.

#include <chrono>
#include <cstdint>

namespace sless::cron {

inline constexpr int64_t kDay = 86400;

/// Rounds towards minus infinity.
constexpr int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

inline int64_t DaysOf(int64_t year, int month, int day) {
  using namespace std::chrono;
  return sys_days(std::chrono::year(static_cast<int>(year)) / month / day)
      .time_since_epoch()
      .count();
}

inline std::chrono::year_month_day DateOf(int64_t days) {
  using namespace std::chrono;
  return year_month_day(sys_days(std::chrono::days(days)));
}

/// 0 is Sunday.
constexpr int WeekdayOf(int64_t days) {
  return static_cast<int>((days + 4) - 7 * FloorDiv(days + 4, 7));
}

}  // namespace sless::cron
