#pragma once

// What every value that goes to the host must look like, whatever the author made.

#include "provider/framework/schema.h"

namespace sless::framework::engine {

/// `value` with write-only attributes null, and list, set and map blocks empty where they are null.
cty::Value Shape(const Schema& schema, const cty::Value& value);

/// `value`, with the spelling of `reference` wherever an attribute with semantic equality means the
/// same. Through lists by index, maps by key, sets by content.
cty::Value KeepSpelling(const Schema& schema, const cty::Value& reference, const cty::Value& value);

/// An object of nulls, blocks empty.
cty::Value EmptyObject(const Schema& schema);

/// True if two elements of a set were made from one element of the configuration: equal, except
/// where `config` is null and the attribute is computed.
bool SameElement(const std::vector<Attribute>& attributes, const std::vector<Block>& blocks,
                 const cty::Value& config, const cty::Value& other);

/// For each of `configs`, the index of its partner in `others`, each used once; -1 without one.
std::vector<int> PairElements(const std::vector<Attribute>& attributes,
                              const std::vector<Block>& blocks, const cty::Value::Elements& configs,
                              const cty::Value::Elements& others);

}  // namespace sless::framework::engine
