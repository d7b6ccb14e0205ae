#include "client/cron/time_zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <system_error>

#include "client/cron/zone_data.h"
#include "client/cron/zone_names.h"

namespace sless::cron {
namespace {

using base::Code;
using base::Err;

// The largest zone file of today has 4 KiB.
constexpr size_t kMaxFile = 1 << 20;

base::Result<std::string> ReadZoneFile(const std::string& path, std::string_view name) {
  const auto broken = [&](std::string_view what) {
    return Err(Code::kFailedPrecondition,
               fmt::format(
                   "cannot read the time zone \"{}\" from {}: {}; install the tzdata package again",
                   name, path, what));
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return broken("the file cannot be opened");
  std::string bytes(kMaxFile + 1, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (file.bad()) return broken("reading failed");
  bytes.resize(static_cast<size_t>(file.gcount()));
  if (bytes.size() > kMaxFile) return broken("it is larger than any zone file");
  return bytes;
}

}  // namespace

TimeZone TimeZone::Utc() {
  static const auto kUtc = [] {
    auto data = std::make_shared<ZoneData>();
    data->name = "UTC";
    return data;
  }();
  return TimeZone(kUtc);
}

base::Result<TimeZone> TimeZone::Load(std::string_view name, const std::string& dir) {
  if (name == "UTC") return Utc();
  RETURN_IF_ERROR(CheckZoneName(name));
  const std::string path = dir + "/" + std::string(name);
  if (!IsZoneFile(path)) return UnknownZone(name, dir);
  ASSIGN_OR_RETURN(const auto bytes, ReadZoneFile(path, name));
  auto zone = FromTzif(name, bytes);
  if (!zone) {
    return Err(Code::kFailedPrecondition,
               fmt::format("{} is not a sound time zone file: {}; install the tzdata package again",
                           path, zone.error().message));
  }
  return zone;
}

base::Result<TimeZone> TimeZone::FromTzif(std::string_view name, std::string_view bytes) {
  ASSIGN_OR_RETURN(auto data, ReadTzif(bytes));
  data.name = std::string(name);
  return TimeZone(std::make_shared<const ZoneData>(std::move(data)));
}

const std::string& TimeZone::name() const { return data_->name; }

Period TimeZone::At(int64_t unix_seconds) const {
  const auto& transitions = data_->transitions;
  const auto next =
      std::upper_bound(transitions.begin(), transitions.end(), unix_seconds,
                       [](int64_t t, const Transition& transition) { return t < transition.at; });
  Period period;
  period.offset_sec =
      next == transitions.begin() ? data_->first_offset_sec : std::prev(next)->offset_sec;
  if (next != transitions.begin()) period.begin = std::prev(next)->at;
  if (next != transitions.end()) {
    period.end = next->at;
    return period;
  }
  if (!data_->rule) return period;
  // After the last transition of the table the rule goes on; it cannot reach back before that
  // transition.
  Period by_rule = data_->rule->At(unix_seconds);
  by_rule.begin = std::max(by_rule.begin, period.begin);
  return by_rule;
}

base::Status ValidateTimeZone(std::string_view name, const std::string& dir) {
  if (name == "UTC") return base::Ok();
  RETURN_IF_ERROR(CheckZoneName(name));
  if (IsZoneFile(dir + "/" + std::string(name)) || !HasZones(dir)) return base::Ok();
  return UnknownZone(name, dir);
}

}  // namespace sless::cron
