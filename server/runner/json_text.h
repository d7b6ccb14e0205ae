#pragma once

// Parts of a JSON text as they were written: a parsed tree keeps neither the digits of its numbers
// nor the order of its members.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sless::runner {

/// The members of an object, or the elements of an array (without names), in their order; the
/// values as they stand in `text`. `text` is what base::CheckJson takes; {} for what is neither.
std::vector<std::pair<std::string, std::string_view>> PartsOf(std::string_view text);

}  // namespace sless::runner
