#pragma once

// Short forms for `.default_value`.

#include "provider/cty/value.h"

namespace sless::framework {

inline cty::Value Int(int64_t value) { return cty::Value::Int(value); }
inline cty::Value Str(std::string_view value) { return cty::Value::String(value); }
inline cty::Value True() { return cty::Value::Bool(true); }
inline cty::Value False() { return cty::Value::Bool(false); }
inline cty::Value EmptyList() { return cty::Value::List({}); }
inline cty::Value EmptySet() { return cty::Value::Set({}); }
inline cty::Value EmptyMap() { return cty::Value::Map({}); }

}  // namespace sless::framework
