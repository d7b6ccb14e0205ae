#pragma once

#include <string_view>

#include "client/base/result.h"

namespace sless::runner {

/// Is `text` one JSON text, nested at most base::kMaxJsonDepth deep? Builds nothing: an event of 6
/// MiB would take many times that as a tree, out of the function's own memory. Numbers of any size
/// are fine: they stay text. Error: kInvalidArgument.
base::Status CheckJson(std::string_view text);

}  // namespace sless::runner
