#pragma once

// One of the five fields; for this room only.

#include <span>
#include <string_view>

#include "client/base/result.h"

namespace sless::cron {

/// What a field may hold.
struct FieldRule {
  std::string_view name;  ///< for messages: "day of month"
  int min;
  int max;
  std::span<const std::string_view> names;  ///< words for the values from `min` on; empty: none
  bool sunday_is_seven = false;             ///< 7 means 0
};

/// The values of a field as bits. Error: kInvalidArgument; names field, value and allowed range.
base::Result<uint64_t> ParseField(std::string_view text, const FieldRule& rule);

}  // namespace sless::cron
