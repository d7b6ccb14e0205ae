#pragma once

// The `timeouts` block as users of other providers know it.

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/clock.h"
#include "provider/framework/schema.h"

namespace sless::framework {

/// Reads Go's duration syntax ("1h30m", "1.5s", "300ms", "0"). Error: kInvalidArgument, also for
/// values out of range.
base::Result<std::chrono::nanoseconds> ParseDuration(std::string_view text);
/// The value must be a duration above zero.
Validator Duration();
struct Timeout {
  std::string operation;     ///< "create", "read", "update" or "delete"
  std::string default_text;  ///< for the docs: how long it may take where it is not set; "" leaves
                             ///< it out
};
/// `timeouts { create = "30m" }` with these operations.
Block TimeoutsBlock(std::vector<Timeout> timeouts);
/// The timeout of `operation` in a value that has that block, `fallback` where it is not set (or
/// not readable, which validation has refused).
std::chrono::nanoseconds TimeoutOf(const cty::Value& value, std::string_view operation,
                                   std::chrono::nanoseconds fallback);

}  // namespace sless::framework
