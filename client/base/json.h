#pragma once

// JSON without exceptions and with limits. Include <nlohmann/json.hpp> in .cc files only.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "client/base/result.h"

namespace sless::base {

/// Deepest nesting that ParseJson takes: enough for people, far below what exhausts a stack.
inline constexpr int kMaxJsonDepth = 100;

/// Reads one JSON text (RFC 8259). Errors: kInvalidArgument with line and column, or for nesting
/// above kMaxJsonDepth.
Result<nlohmann::json> ParseJson(std::string_view text);
/// Is `text` one JSON text that ParseJson would take? Builds nothing: as a tree it would take many
/// times its size. Integers of any size are fine, for nobody reads them. Errors: those of
/// ParseJson.
Status CheckJson(std::string_view text);
/// Writes compact JSON; bytes that are not UTF-8 become U+FFFD. Never throws.
std::string DumpJson(const nlohmann::json& value);
/// True if both texts are JSON and mean the same: object order and white space do not count,
/// numbers compare by value (1 and 1.0 are equal; integers beyond 64 bits compare by their digits).
bool JsonEqual(std::string_view a, std::string_view b);

}  // namespace sless::base
