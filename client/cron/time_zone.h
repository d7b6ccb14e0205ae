#pragma once

// IANA time zones from the system's compiled zone files (docs/decisions/0012).

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "client/base/result.h"

namespace sless::cron {

inline constexpr const char* kZoneInfoDir = "/usr/share/zoneinfo";

/// A stretch of time with one offset: [begin, end) in unix seconds.
struct Period {
  int64_t begin = INT64_MIN;  ///< INT64_MIN: since ever
  int64_t end = INT64_MAX;    ///< INT64_MAX: for ever
  int64_t offset_sec = 0;     ///< local time minus UTC
};

struct ZoneData;

/// The offsets of one zone. Immutable, cheap to copy.
/// Thread safety: const methods from any thread.
class TimeZone {
 public:
  /// Coordinated universal time; needs no file.
  static TimeZone Utc();
  /// Errors: kInvalidArgument no IANA name, or a zone that the machine does not know ("did you mean
  /// …"); kFailedPrecondition the machine's file is broken or cannot be read: install the tzdata
  /// package. "UTC" never fails.
  static base::Result<TimeZone> Load(std::string_view name, const std::string& dir = kZoneInfoDir);
  /// Reads the contents of a TZif file (RFC 8536, versions 1 to 4). Error: kInvalidArgument.
  static base::Result<TimeZone> FromTzif(std::string_view name, std::string_view bytes);

  const std::string& name() const;
  /// The period that holds `unix_seconds`.
  Period At(int64_t unix_seconds) const;

 private:
  explicit TimeZone(std::shared_ptr<const ZoneData> data) : data_(std::move(data)) {}
  std::shared_ptr<const ZoneData> data_;
};

/// Is this an IANA zone name that this machine knows? On a machine without a zone database only the
/// grammar is checked, since the server checks again. Error: kInvalidArgument, with the nearest
/// known name.
base::Status ValidateTimeZone(std::string_view name, const std::string& dir = kZoneInfoDir);

}  // namespace sless::cron
