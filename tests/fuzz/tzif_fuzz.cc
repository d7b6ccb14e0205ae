// Compiled zone files and POSIX TZ rules. A zone that is taken has one offset for each second, in
// periods without holes.

#include <fstream>
#include <iterator>

#include "client/cron/schedule.h"
#include "client/cron/zone_data.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {

std::vector<std::string> Seeds() {
  std::vector<std::string> out{"CET-1CEST,M3.5.0,M10.5.0/3", "<+0330>-3:30<+0430>,J79/24,J263/24",
                               "EST5EDT,0/0,J365/25", "UTC0"};
  for (const char* name :
       {"Europe/Berlin", "Pacific/Apia", "Africa/Casablanca", "Asia/Kolkata", "UTC"}) {
    std::ifstream in(std::string(cron::kZoneInfoDir) + "/" + name, std::ios::binary);
    out.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return out;
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  const auto bytes = fuzz::Text(data, size);
  static constexpr int64_t kTimes[] = {
      INT64_MIN,  INT64_MIN + 1, -1'000'000'000'000, -62135596800,  -1,       0, 1325203200,
      1774747200, 253402300800,  10'000'000'000'000, INT64_MAX - 1, INT64_MAX};
  if (const auto rule = cron::ParsePosixRule(bytes)) {
    for (const int64_t at : kTimes) {
      const auto period = rule->At(at);
      fuzz::Require(period.begin <= at && (at < period.end || period.end == INT64_MAX),
                    "the rule's period holds the time");
    }
  }
  const auto zone = cron::TimeZone::FromTzif("Test/Zone", bytes);
  if (!zone) return 0;
  for (const int64_t at : kTimes) {
    const auto period = zone->At(at);
    fuzz::Require(period.begin <= at && (at < period.end || period.end == INT64_MAX),
                  "the period holds the time");
    if (period.end != INT64_MAX)
      fuzz::Require(zone->At(period.end).begin == period.end,
                    "the next period begins where this one ends");
  }
  const auto schedule = cron::Schedule::Parse("30 2 * * *").value();
  const base::TimePoint after{std::chrono::seconds(1774747200)};
  if (const auto next = schedule.Next(after, *zone))
    fuzz::Require(*next > after, "the next fire is later");
  return 0;
}
