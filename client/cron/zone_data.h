#pragma once

// The contents of a zone file (RFC 8536); for this room only.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/result.h"
#include "client/cron/time_zone.h"

namespace sless::cron {

/// From `at` on (unix seconds) the offset holds.
struct Transition {
  int64_t at = 0;
  int64_t offset_sec = 0;
};

/// One of the two yearly dates of a POSIX TZ rule.
struct RuleDate {
  enum class Form { kJulianNoLeap, kDayOfYear, kMonthWeekDay } form = Form::kDayOfYear;
  int day = 0;    ///< kJulianNoLeap 1 to 365, kDayOfYear 0 to 365, kMonthWeekDay 0 (Sunday) to 6
  int month = 0;  ///< kMonthWeekDay: 1 to 12
  int week = 0;   ///< kMonthWeekDay: 1 to 5, 5 is the last
  int64_t time_sec = 7200;  ///< wall clock seconds after midnight, -167 h to 167 h
};

/// The footer of a zone file: what holds after the last transition (POSIX TZ).
struct PosixRule {
  int64_t standard_offset_sec = 0;
  std::optional<int64_t> daylight_offset_sec;  ///< nullopt: no daylight saving time
  RuleDate start;                              ///< of daylight saving time
  RuleDate end;

  Period At(int64_t unix_seconds) const;
};

struct ZoneData {
  std::string name;
  int64_t first_offset_sec = 0;         ///< before the first transition
  std::vector<Transition> transitions;  ///< rising
  std::optional<PosixRule> rule;        ///< after the last transition; nullopt: its offset goes on
};

/// Error: kInvalidArgument; says what is broken. Never reads outside of `bytes`.
base::Result<ZoneData> ReadTzif(std::string_view bytes);
/// Reads "CET-1CEST,M3.5.0,M10.5.0/3". Error: kInvalidArgument.
base::Result<PosixRule> ParsePosixRule(std::string_view text);

}  // namespace sless::cron
