#pragma once

// MessagePack form of values, driven by the type (tfplugin6 DynamicValue.msgpack).

#include <string>
#include <string_view>

#include "provider/cty/value.h"

namespace sless::cty {

/// Reads one value. An empty text is null. Refinements of unknown values are dropped. Safe for
/// hostile input: bounded depth, no allocation above the input's size. Error: kInvalidArgument; the
/// message begins with the path.
base::Result<Value> DecodeMsgpack(std::string_view bytes, const Type& type);

/// Writes one value: deterministic (attributes and sets sorted). Error: kInternal where the value
/// does not conform to the type; the message begins with the path.
base::Result<std::string> EncodeMsgpack(const Value& value, const Type& type);

}  // namespace sless::cty
