#include "provider/framework/engine/shape.h"

#include <functional>

namespace sless::framework::engine {
namespace {

using Attributes = std::vector<Attribute>;
using Blocks = std::vector<Block>;
using Kind = cty::Value::Kind;

// Applies `change` to each object in a nested value.
cty::Value EachObject(Nesting nesting, const cty::Value& value,
                      const std::function<cty::Value(const cty::Value&)>& change) {
  if (!value.IsKnown()) return value;
  if (nesting == Nesting::kSingle) return change(value);
  if (nesting == Nesting::kMap) {
    cty::Value::Members members;
    for (const auto& [key, item] : value.AsMap())
      members.emplace(key, item.IsKnown() ? change(item) : item);
    return cty::Value::Map(std::move(members));
  }
  cty::Value::Elements items;
  for (const auto& item : value.AsList()) items.push_back(item.IsKnown() ? change(item) : item);
  return nesting == Nesting::kSet ? cty::Value::Set(std::move(items))
                                  : cty::Value::List(std::move(items));
}

cty::Value EmptyBlock(Nesting nesting) {
  switch (nesting) {
    case Nesting::kSingle:
      return cty::Value::Null();
    case Nesting::kList:
      return cty::Value::List({});
    case Nesting::kSet:
      return cty::Value::Set({});
    case Nesting::kMap:
      return cty::Value::Map({});
  }
  return cty::Value::Null();
}

bool NeedsShape(const Attributes& attributes) {
  for (const auto& a : attributes) {
    if (a.options.write_only || NeedsShape(a.type.attributes)) return true;
  }
  return false;
}

cty::Value ShapeLevel(const Attributes& attributes, const Blocks& blocks,
                      const cty::Value& object) {
  if (object.kind() != Kind::kObject) return object;
  cty::Value result = object;
  for (const auto& attribute : attributes) {
    const cty::Value& part = object.Get(attribute.name);
    if (part.IsNull()) continue;
    if (attribute.options.write_only) {
      result = result.With(attribute.name, cty::Value::Null());
    } else if (attribute.type.nesting && NeedsShape(attribute.type.attributes)) {
      result = result.With(attribute.name,
                           EachObject(*attribute.type.nesting, part, [&](const cty::Value& item) {
                             return ShapeLevel(attribute.type.attributes, {}, item);
                           }));
    }
  }
  for (const auto& block : blocks) {
    const cty::Value& part = object.Get(block.name);
    cty::Value shaped = part.IsNull()
                            ? EmptyBlock(block.nesting)
                            : EachObject(block.nesting, part, [&](const cty::Value& item) {
                                return ShapeLevel(block.attributes, block.blocks, item);
                              });
    if (!(shaped == part)) result = result.With(block.name, std::move(shaped));
  }
  return result;
}

// --- semantic equality ---

bool HasSemantics(const Attributes& attributes) {
  for (const auto& a : attributes) {
    if (a.options.semantic_equal || HasSemantics(a.type.attributes)) return true;
  }
  return false;
}
bool HasSemantics(const Attributes& attributes, const Blocks& blocks) {
  if (HasSemantics(attributes)) return true;
  for (const auto& b : blocks) {
    if (HasSemantics(b.attributes, b.blocks)) return true;
  }
  return false;
}

cty::Value KeepLevel(const Attributes& attributes, const Blocks& blocks,
                     const cty::Value& reference, const cty::Value& value);

cty::Value KeepNested(Nesting nesting, const Attributes& attributes, const Blocks& blocks,
                      const cty::Value& reference, const cty::Value& value) {
  if (!reference.IsKnown() || !value.IsKnown() || reference.kind() != value.kind()) return value;
  const auto keep = [&](const cty::Value& ref, const cty::Value& item) {
    return KeepLevel(attributes, blocks, ref, item);
  };
  if (nesting == Nesting::kSingle) return keep(reference, value);
  if (nesting == Nesting::kMap) {
    cty::Value::Members members;
    for (const auto& [key, item] : value.AsMap())
      members.emplace(key, keep(reference.Get(key), item));
    return cty::Value::Map(std::move(members));
  }
  cty::Value::Elements items = value.AsList();
  const auto& references = reference.AsList();
  if (nesting == Nesting::kList) {
    for (size_t i = 0; i < items.size() && i < references.size(); ++i)
      items[i] = keep(references[i], items[i]);
    return cty::Value::List(std::move(items));
  }
  // Sets: an element takes the spelling of the first one that it then equals.
  for (auto& item : items) {
    for (const auto& ref : references) {
      cty::Value kept = keep(ref, item);
      if (kept == ref) {
        item = std::move(kept);
        break;
      }
    }
  }
  return cty::Value::Set(std::move(items));
}

cty::Value KeepLevel(const Attributes& attributes, const Blocks& blocks,
                     const cty::Value& reference, const cty::Value& value) {
  if (reference.kind() != Kind::kObject || value.kind() != Kind::kObject) return value;
  cty::Value result = value;
  for (const auto& attribute : attributes) {
    const cty::Value& ref = reference.Get(attribute.name);
    const cty::Value& part = value.Get(attribute.name);
    if (!ref.IsKnown() || !part.IsKnown() || ref == part) continue;
    if (attribute.options.semantic_equal && ref.IsWhollyKnown() && part.IsWhollyKnown() &&
        attribute.options.semantic_equal(ref, part)) {
      result = result.With(attribute.name, ref);
    } else if (attribute.type.nesting && HasSemantics(attribute.type.attributes)) {
      result = result.With(attribute.name, KeepNested(*attribute.type.nesting,
                                                      attribute.type.attributes, {}, ref, part));
    }
  }
  for (const auto& block : blocks) {
    if (!HasSemantics(block.attributes, block.blocks)) continue;
    result = result.With(block.name, KeepNested(block.nesting, block.attributes, block.blocks,
                                                reference.Get(block.name), value.Get(block.name)));
  }
  return result;
}

// --- elements of sets ---

bool SameNested(Nesting nesting, const Attributes& attributes, const Blocks& blocks,
                const cty::Value& config, const cty::Value& other) {
  if (!config.IsKnown() || !other.IsKnown() || config.size() != other.size())
    return config == other;
  switch (nesting) {
    case Nesting::kSingle:
      return SameElement(attributes, blocks, config, other);
    case Nesting::kMap:
      for (const auto& [key, item] : config.AsMap()) {
        if (!other.AsMap().contains(key) || !SameElement(attributes, blocks, item, other.Get(key)))
          return false;
      }
      return true;
    case Nesting::kList:
      for (size_t i = 0; i < config.AsList().size(); ++i) {
        if (!SameElement(attributes, blocks, config.AsList()[i], other.AsList()[i])) return false;
      }
      return true;
    case Nesting::kSet:
      for (const int partner : PairElements(attributes, blocks, config.AsList(), other.AsList())) {
        if (partner < 0) return false;
      }
      return true;
  }
  return false;
}

}  // namespace

bool SameElement(const Attributes& attributes, const Blocks& blocks, const cty::Value& config,
                 const cty::Value& other) {
  if (!config.IsKnown() || !other.IsKnown()) return config == other;
  for (const auto& attribute : attributes) {
    const cty::Value& a = config.Get(attribute.name);
    const cty::Value& b = other.Get(attribute.name);
    if (a.IsNull() && attribute.options.computed) continue;
    if (attribute.options.write_only && b.IsNull()) continue;
    const bool same = attribute.type.nesting
                          ? SameNested(*attribute.type.nesting, attribute.type.attributes, {}, a, b)
                          : a == b;
    if (!same) return false;
  }
  for (const auto& block : blocks) {
    if (!SameNested(block.nesting, block.attributes, block.blocks, config.Get(block.name),
                    other.Get(block.name))) {
      return false;
    }
  }
  return true;
}

std::vector<int> PairElements(const Attributes& attributes, const Blocks& blocks,
                              const cty::Value::Elements& configs,
                              const cty::Value::Elements& others) {
  std::vector<int> partners(configs.size(), -1);
  std::vector<bool> used(others.size(), false);
  for (size_t i = 0; i < configs.size(); ++i) {
    for (size_t j = 0; j < others.size(); ++j) {
      if (used[j] || !SameElement(attributes, blocks, configs[i], others[j])) continue;
      partners[i] = static_cast<int>(j);
      used[j] = true;
      break;
    }
  }
  return partners;
}

cty::Value Shape(const Schema& schema, const cty::Value& value) {
  return ShapeLevel(schema.attributes, schema.blocks, value);
}

cty::Value KeepSpelling(const Schema& schema, const cty::Value& reference,
                        const cty::Value& value) {
  if (!HasSemantics(schema.attributes, schema.blocks)) return value;
  return KeepLevel(schema.attributes, schema.blocks, reference, value);
}

cty::Value EmptyObject(const Schema& schema) {
  return Shape(schema, cty::NullObject(ImpliedType(schema)));
}

}  // namespace sless::framework::engine
