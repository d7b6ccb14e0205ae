#include "client/base/clock.h"

#include <fmt/format.h>

#include <cstdio>

namespace sless::base {
namespace {

// 'd' stands for a digit. sscanf alone would take signs and spaces too.
bool HasForm(std::string_view text, std::string_view form) {
  if (text.size() < form.size()) return false;
  for (size_t i = 0; i < form.size(); ++i) {
    if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i]) return false;
  }
  return true;
}

}  // namespace

std::string FormatTime(TimePoint time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date{day};
  const hh_mm_ss clock{floor<milliseconds>(time - day)};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", int(date.year()),
                     unsigned(date.month()), unsigned(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count(), clock.subseconds().count());
}

Result<TimePoint> ParseTime(std::string_view text) {
  using namespace std::chrono;
  const std::string copy(text);
  const auto bad = [&] {
    return Err(Code::kInvalidArgument, fmt::format("want a time as in RFC 3339, got \"{}\"", text));
  };
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0, used = 0;
  if (!HasForm(copy, "dddd-dd-ddTdd:dd:dd") ||
      std::sscanf(copy.c_str(), "%4d-%2d-%2dT%2d:%2d:%2d%n", &y, &mo, &d, &h, &mi, &s, &used) !=
          6) {
    return bad();
  }
  std::string_view rest = std::string_view(copy).substr(used);
  nanoseconds fraction{0};
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    int64_t value = 0, digits = 0;
    while (!rest.empty() && rest[0] >= '0' && rest[0] <= '9' && digits < 9) {
      value = value * 10 + (rest[0] - '0');
      ++digits;
      rest.remove_prefix(1);
    }
    if (digits == 0) return bad();
    for (; digits < 9; ++digits) value *= 10;
    fraction = nanoseconds(value);
  }
  minutes offset{0};
  if (rest != "Z" && rest != "z") {
    int oh = 0, om = 0, n = 0;
    char sign = 0;
    if (rest.empty() || !HasForm(rest.substr(1), "dd:dd") ||
        std::sscanf(std::string(rest).c_str(), "%c%2d:%2d%n", &sign, &oh, &om, &n) != 3 ||
        (sign != '+' && sign != '-') || size_t(n) != rest.size() || oh > 23 || om > 59) {
      return bad();
    }
    offset = minutes((oh * 60 + om) * (sign == '-' ? -1 : 1));
  }
  const year_month_day date{year(y), month(mo), day(d)};
  // The clock counts nanoseconds in 64 bits.
  if (y < 1678 || y > 2261) return bad();
  if (!date.ok() || h > 23 || mi > 59 || s > 60) return bad();
  return TimePoint(duration_cast<TimePoint::duration>(
      sys_days(date).time_since_epoch() + hours(h) + minutes(mi) + seconds(s) + fraction - offset));
}

}  // namespace sless::base
