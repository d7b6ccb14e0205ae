// Cron schedules: zone, time and schedule, a line each. A schedule that is taken fires, later than
// asked, and always the same.

#include "client/base/strings.h"
#include "client/cron/schedule.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {

std::vector<std::string> Seeds() {
  return {"UTC\n0\n* * * * *",
          "Europe/Berlin\n1774747200\n30 2 * * *",
          "America/New_York\n1793500000\n*/15 1-3 * * SUN",
          "Australia/Lord_Howe\n1775300000\n0 */2 1,15 * 0-6/2",
          "Asia/Tehran\n1700000000\n59 23 29 FEB *",
          "Pacific/Apia\n1325203200\n@daily",
          "UTC\n253402300799\n0 0 31 12 *",
          "Africa/Casablanca\n-62135596800\n@hourly",
          "UTC\n1\n0 0 30 2 *"};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  fuzz::Parts parts(fuzz::Text(data, size));
  const std::string zone_name(parts.Line());
  const std::string when(parts.Line());
  const auto schedule = cron::Schedule::Parse(parts.Rest());
  const auto zone = cron::TimeZone::Load(zone_name);
  const bool utf8 = base::IsUtf8(fuzz::Text(data, size));
  if (!schedule)
    fuzz::Require(!utf8 || base::IsUtf8(schedule.error().message),
                  "an error's text is UTF-8 where the input is");
  if (!zone)
    fuzz::Require(!utf8 || base::IsUtf8(zone.error().message),
                  "an error's text is UTF-8 where the input is");
  if (!schedule) return 0;
  // Any second that the clock can hold.
  const long long limit =
      std::chrono::duration_cast<std::chrono::seconds>(base::TimePoint::max().time_since_epoch())
          .count();
  const base::TimePoint after{
      std::chrono::seconds(std::strtoll(when.c_str(), nullptr, 10) % limit)};
  const auto use = zone ? *zone : cron::TimeZone::Utc();
  const auto next = schedule->Next(after, use);
  if (!next) return 0;
  fuzz::Require(*next > after, "the next fire is later");
  fuzz::Require(schedule->Next(after, use) == next, "the answer is always the same");
  fuzz::Require(next->time_since_epoch() % std::chrono::seconds(1) == std::chrono::seconds(0),
                "a fire is on a second");
  const auto before = *next - std::chrono::seconds(1);
  if (before > after)
    fuzz::Require(schedule->Next(before, use) == next, "nothing fires in between");
  return 0;
}
