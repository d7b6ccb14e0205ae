#pragma once

// The stock of validators. Null and unknown values pass all but the rules across attributes.
// Messages: summary "Invalid Attribute Value" or "Invalid Attribute Combination", detail with path,
// rule and (if not sensitive) the value.

#include <cstdint>
#include <string>
#include <vector>

#include "provider/framework/schema.h"

namespace sless::framework {

// Strings. Lengths are in Unicode characters.
Validator LengthBetween(size_t least, size_t most);
Validator LengthAtLeast(size_t least);
Validator LengthAtMost(size_t most);
/// With "did you mean" for near misses.
Validator OneOf(std::vector<std::string> values);
/// `pattern` is an ECMAScript regular expression that must match the whole value (at most 4096
/// bytes are tried); `rule` completes "value must …".
Validator Matches(std::string pattern, std::string rule);
/// The value must be JSON text.
Validator JsonText();
/// Any rule over a string: `problem` returns "" or completes "Attribute x …" as in "is not a DNS
/// label: …".
Validator StringRule(std::string description,
                     std::function<std::string(const std::string&)> problem);

// Numbers.
Validator Between(int64_t least, int64_t most);
Validator AtLeast(int64_t least);
Validator AtMost(int64_t most);

// Lists, sets, maps.
Validator SizeBetween(size_t least, size_t most);
Validator SizeAtLeast(size_t least);
Validator SizeAtMost(size_t most);
Validator UniqueValues();
/// No element may be null.
Validator NoNullElements();
/// Applies `element` to each known element of a list or map, at the element's path.
Validator EachElement(Validator element);
/// Applies `key` to each key of a map, as a string at the element's path.
Validator EachKey(Validator key);

// Across attributes of the same level or above; paths from the root, names alone for attributes of
// the root.
/// None of `others` may be set beside this one.
Validator ConflictsWith(std::vector<cty::Path> others);
/// Exactly one of this one and `others` must be set (one error, at this attribute: put it on one of
/// them).
Validator ExactlyOneOf(std::vector<cty::Path> others);
Validator AtLeastOneOf(std::vector<cty::Path> others);
/// Where this one is set, all of `others` must be set.
Validator RequiredTogether(std::vector<cty::Path> others);

}  // namespace sless::framework
