// The host's merge of configuration and prior state, written from the protocol's description and on
// its own: the engine must not be tested by itself.

#include "provider/framework/engine/shape.h"
#include "provider/framework/testing/core_driver.h"

namespace sless::framework::testing {
namespace {

using Attributes = std::vector<Attribute>;
using Blocks = std::vector<Block>;

cty::Value Level(const Attributes& attributes, const Blocks& blocks, const cty::Value& prior,
                 const cty::Value& config);

cty::Value AllNull(const Attributes& attributes, const Blocks& blocks) {
  Schema schema;
  schema.attributes = attributes;
  schema.blocks = blocks;
  return engine::EmptyObject(schema);
}

cty::Value Element(const Attributes& attributes, const Blocks& blocks, const cty::Value& prior,
                   const cty::Value& config) {
  if (!config.IsKnown()) return config;
  return Level(attributes, blocks, prior, config);
}

cty::Value Nested(Nesting nesting, const Attributes& attributes, const Blocks& blocks,
                  const cty::Value& prior, const cty::Value& config) {
  if (!config.IsKnown()) return config;
  if (nesting == Nesting::kSingle) return Level(attributes, blocks, prior, config);
  if (nesting == Nesting::kMap) {
    cty::Value::Members members;
    for (const auto& [key, item] : config.AsMap()) {
      members.emplace(key, Element(attributes, blocks, prior.Get(key), item));
    }
    return cty::Value::Map(std::move(members));
  }
  cty::Value::Elements items;
  const auto& configured = config.AsList();
  if (nesting == Nesting::kList) {
    for (size_t i = 0; i < configured.size(); ++i) {
      // Without partner the element is the configuration's.
      items.push_back(i < prior.AsList().size()
                          ? Element(attributes, blocks, prior.AsList()[i], configured[i])
                          : configured[i]);
    }
    return cty::Value::List(std::move(items));
  }
  const auto partners = engine::PairElements(attributes, blocks, configured, prior.AsList());
  for (size_t i = 0; i < configured.size(); ++i) {
    const cty::Value old =
        partners[i] < 0 ? cty::Value::Null() : prior.AsList()[static_cast<size_t>(partners[i])];
    items.push_back(Element(attributes, blocks, old, configured[i]));
  }
  return cty::Value::Set(std::move(items));
}

bool HasConfiguredPart(const Attributes& attributes, const cty::Value& object) {
  for (const auto& a : attributes) {
    const cty::Value& part = object.Get(a.name);
    if (part.IsNull()) continue;
    if (!a.options.computed) return true;
    for (const auto& item : part.AsList()) {
      if (HasConfiguredPart(a.type.attributes, item)) return true;
    }
  }
  return false;
}

// A value of an optional and computed nested attribute that can only stem from a configuration that
// was removed.
bool WasConfigured(const Attribute& attribute, const cty::Value& prior) {
  if (!attribute.options.optional || !attribute.type.nesting) return false;
  const auto& inner = attribute.type.attributes;
  if (*attribute.type.nesting == Nesting::kSingle) return HasConfiguredPart(inner, prior);
  for (const auto& item : prior.AsList()) {
    if (HasConfiguredPart(inner, item)) return true;
  }
  for (const auto& [key, item] : prior.AsMap()) {
    if (HasConfiguredPart(inner, item)) return true;
  }
  return false;
}

cty::Value Level(const Attributes& attributes, const Blocks& blocks, const cty::Value& given_prior,
                 const cty::Value& config) {
  const cty::Value prior = given_prior.IsNull() ? AllNull(attributes, blocks) : given_prior;
  cty::Value::Members members;
  for (const auto& a : attributes) {
    const cty::Value& c = config.Get(a.name);
    const cty::Value& p = prior.Get(a.name);
    if (a.options.computed && c.IsNull()) {
      members.emplace(a.name, WasConfigured(a, p) ? cty::Value::Null() : p);
    } else if (a.type.nesting) {
      members.emplace(a.name, Nested(*a.type.nesting, a.type.attributes, {}, p, c));
    } else {
      members.emplace(a.name, c);
    }
  }
  for (const auto& b : blocks) {
    members.emplace(
        b.name, Nested(b.nesting, b.attributes, b.blocks, prior.Get(b.name), config.Get(b.name)));
  }
  return cty::Value::Object(std::move(members));
}

}  // namespace

cty::Value ProposeNewState(const Schema& schema, const cty::Value& prior,
                           const cty::Value& config) {
  if (config.IsNull()) return cty::Value::Null();
  return Level(schema.attributes, schema.blocks, prior, config);
}

}  // namespace sless::framework::testing
