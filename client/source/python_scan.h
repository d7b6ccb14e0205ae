#pragma once

#include <string_view>

#include "client/source/scan.h"

namespace sless::source {

/// Names that a Python module binds at its top level (also inside of its if, try, with and for
/// blocks).
Names ScanPython(std::string_view text);

}  // namespace sless::source
