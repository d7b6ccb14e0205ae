#pragma once

// Kinds of equality by meaning, for `.semantic_equal`.

#include "provider/framework/schema.h"

namespace sless::framework {

/// Both are JSON text of the same meaning (white space, key order, spelling of numbers do not
/// count).
bool JsonEqual(const cty::Value& a, const cty::Value& b);

}  // namespace sless::framework
