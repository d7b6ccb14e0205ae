#include "client/cron/zone_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "client/base/strings.h"

namespace sless::cron {
namespace {

using base::Code;
using base::Err;
namespace fs = std::filesystem;

constexpr size_t kMaxName = 64;
constexpr size_t kMaxZones = 5000;

// Copies with leap seconds and aliases of the machine's own setting; no IANA names.
bool IsForeign(std::string_view name) {
  return name.starts_with("posix/") || name.starts_with("right/") || name == "localtime" ||
         name == "posixrules" || name == "Factory";
}

std::vector<std::string> AllZones(const std::string& dir) {
  std::vector<std::string> names;
  std::error_code error;
  size_t seen = 0;
  for (fs::recursive_directory_iterator it(dir, error), end;
       !error && it != end && seen < kMaxZones; it.increment(error), ++seen) {
    std::string name = it->path().lexically_relative(dir).string();
    if (IsForeign(name + "/")) {
      it.disable_recursion_pending();
    } else if (!IsForeign(name) && CheckZoneName(name) && it->is_regular_file(error) &&
               IsZoneFile(it->path())) {
      names.push_back(std::move(name));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The same letters in another case, then the same city, then the nearest spelling.
std::string Suggest(std::string_view name, const std::vector<std::string>& known) {
  const std::string wanted = base::Lower(name);
  for (const auto& candidate : known) {
    if (base::Lower(candidate) == wanted) return candidate;
  }
  const auto city = [](std::string_view zone) {
    return std::string(zone.substr(zone.rfind('/') + 1));
  };
  for (const auto& candidate : known) {
    if (base::Contains(candidate, '/') && city(base::Lower(candidate)) == city(wanted))
      return candidate;
  }
  return base::Nearest(name, known);
}

}  // namespace

base::Status CheckZoneName(std::string_view name) {
  const auto wrong = [&] {
    return Err(
        Code::kInvalidArgument,
        fmt::format(
            "\"{}\" is not an IANA time zone name; write one like \"Europe/Berlin\" or \"UTC\"",
            base::Truncate(name, kMaxName)));
  };
  if (name.empty() || name.size() > kMaxName || IsForeign(name)) return wrong();
  for (const auto& part : base::Split(name, '/')) {
    if (part.empty() || part.find_first_not_of(
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-") !=
                            std::string::npos) {
      return wrong();
    }
  }
  return base::Ok();
}

bool IsZoneFile(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  std::ifstream file(path, std::ios::binary);
  char magic[4] = {};
  return file.read(magic, 4) && std::string_view(magic, 4) == "TZif";
}

bool HasZones(const std::string& dir) {
  return IsZoneFile(dir + "/Europe/London") || IsZoneFile(dir + "/UTC");
}

tl::unexpected<base::Error> UnknownZone(std::string_view name, const std::string& dir) {
  if (!HasZones(dir)) {
    return Err(Code::kFailedPrecondition,
               fmt::format("the time zone \"{}\" cannot be found: this machine has no time zones "
                           "in {}; install the tzdata package",
                           name, dir));
  }
  const std::string near = Suggest(name, AllZones(dir));
  return Err(
      Code::kInvalidArgument,
      near.empty()
          ? fmt::format(
                "unknown time zone \"{}\"; write an IANA name like \"Europe/Berlin\" or \"UTC\"",
                name)
          : fmt::format("unknown time zone \"{}\"; did you mean \"{}\"?", name, near));
}

}  // namespace sless::cron
