#pragma once

// Which zones the machine knows; for this room only.

#include <string>
#include <string_view>

#include "client/base/result.h"

namespace sless::cron {

/// Grammar of IANA names, so that no name leaves the folder of zones. Error: kInvalidArgument.
base::Status CheckZoneName(std::string_view name);
/// Is there a file that begins like a TZif file?
bool IsZoneFile(const std::string& path);
/// Does the machine have a zone database at all?
bool HasZones(const std::string& dir);
/// "unknown time zone …; did you mean …?"
tl::unexpected<base::Error> UnknownZone(std::string_view name, const std::string& dir);

}  // namespace sless::cron
