#pragma once

// JSON form of values, driven by the type (state files, RawState, DynamicValue.json). Numbers keep
// their digits.

#include <string>
#include <string_view>

#include "provider/cty/value.h"

namespace sless::cty {

struct JsonOptions {
  /// Attributes that the type does not have are dropped; else they are an error.
  bool ignore_extra_attributes = false;
};

/// Reads one value. Missing attributes become null; "5" and "true" are taken for numbers and bools,
/// numbers and bools for strings; the last of duplicate keys wins. Error: kInvalidArgument; the
/// message begins with the path or the position.
base::Result<Value> DecodeJson(std::string_view text, const Type& type, JsonOptions options = {});
/// Reads any JSON without a type: objects become objects, arrays tuples. Error: kInvalidArgument.
base::Result<Value> DecodeAnyJson(std::string_view text);
/// Writes one value. Error: kInternal where it does not conform to the type or has an unknown part.
base::Result<std::string> EncodeJson(const Value& value, const Type& type);

}  // namespace sless::cty
