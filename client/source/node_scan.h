#pragma once

#include <string_view>

#include "client/source/scan.h"

namespace sless::source {

/// Exported functions of a CommonJS or ES module.
Names ScanNode(std::string_view text);

/// True if the text has an import or export statement: it is an ES module.
bool HasModuleSyntax(std::string_view text);

}  // namespace sless::source
