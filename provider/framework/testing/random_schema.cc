#include "provider/framework/testing/random_schema.h"

#include "provider/framework/defaults.h"
#include "provider/framework/plan_modifiers.h"

namespace sless::framework::testing {
namespace {

using Attributes = std::vector<Attribute>;
using Blocks = std::vector<Block>;

// Few different values, so that elements of sets and updates coincide now and then.
cty::Value Small(Random& random, const cty::Type& type) {
  using Kind = cty::Type::Kind;
  const auto elements = [&] {
    cty::Value::Elements items;
    for (uint64_t i = random.Below(3); i > 0; --i) items.push_back(Small(random, type.element()));
    return items;
  };
  switch (type.kind()) {
    case Kind::kBool:
      return cty::Value::Bool(random.Chance(50));
    case Kind::kNumber:
      return random.Chance(80) ? Int(static_cast<int64_t>(random.Below(4)))
                               : cty::Value::Number(*cty::Number::Parse("0.1"));
    case Kind::kList:
      return cty::Value::List(elements());
    case Kind::kSet:
      return cty::Value::Set(elements());
    case Kind::kMap: {
      cty::Value::Members members;
      for (uint64_t i = random.Below(3); i > 0; --i) {
        members.insert_or_assign(std::string(1, static_cast<char>('a' + random.Below(3))),
                                 Small(random, type.element()));
      }
      return cty::Value::Map(std::move(members));
    }
    default:
      return Str(std::string(1, static_cast<char>('a' + random.Below(4))));
  }
}

AttributeType PlainType(Random& random, bool dynamic_allowed) {
  switch (random.Below(8)) {
    case 0:
      return Bool();
    case 1:
      return Number();
    case 2:
      return ListOf(cty::Type::String());
    case 3:
      return SetOf(cty::Type::Number());
    case 4:
      return MapOf(cty::Type::String());
    case 5:
      return dynamic_allowed ? Dynamic() : String();
    default:
      return String();
  }
}

struct Place {
  int depth;
  bool in_set;
  bool dynamic_allowed;
  bool computed_parent;  // parts of something computed only are computed only
};

Attributes RandomAttributes(Random& random, const Place& place);

AttributeType RandomAttributeType(Random& random, const Place& place, bool computed_only) {
  if (place.depth <= 0 || random.Chance(65)) return PlainType(random, place.dynamic_allowed);
  Place inner = place;
  --inner.depth;
  inner.computed_parent = computed_only;
  switch (random.Below(4)) {
    case 0:
      return SingleNested(RandomAttributes(random, inner));
    case 1:
      inner.dynamic_allowed = false;
      return ListNested(RandomAttributes(random, inner));
    case 2:
      inner.dynamic_allowed = false;
      return MapNested(RandomAttributes(random, inner));
    default:
      inner.dynamic_allowed = false;
      inner.in_set = true;
      return SetNested(RandomAttributes(random, inner));
  }
}

Attribute RandomAttribute(Random& random, const Place& place, std::string name) {
  AttributeOptions o;
  const uint64_t flags = place.computed_parent ? 3 : random.Below(5);
  o.required = flags == 0;
  o.optional = flags == 1 || flags == 2 || flags == 4;
  o.computed = flags == 2 || flags == 3;
  o.write_only = flags == 4 && !place.in_set;
  // The host pairs elements of sets by what is configured; optional and computed parts make that
  // ambiguous, and then its own proposal may lose an element. No provider can mend that.
  if (place.in_set && o.optional) o.computed = false;
  // Parts of what the provider may decide are the provider's: hosts take a part that is not
  // computed for the rest of a configuration, and propose null.
  AttributeType type = RandomAttributeType(random, place, o.computed);
  if (o.write_only && type.nesting) o.write_only = false;
  // A bool has too few values: one that the provider decides could make two elements of a set the
  // same.
  if (place.in_set && o.computed && type.type == cty::Type::Bool()) type = String();
  if (o.optional && o.computed && random.Chance(50) && type.type.IsPrimitive())
    o.default_value = Small(random, type.type);
  if (o.computed && random.Chance(50)) o.plan_modifiers.push_back(UseStateForUnknown());
  if (!o.computed && random.Chance(10)) o.plan_modifiers.push_back(RequiresReplace());
  return {std::move(name), std::move(type), std::move(o)};
}

Attributes RandomAttributes(Random& random, const Place& place) {
  Attributes attributes;
  const uint64_t count = 1 + random.Below(4);
  for (uint64_t i = 0; i < count; ++i)
    attributes.push_back(RandomAttribute(random, place, "a" + std::to_string(i)));
  return attributes;
}

Block RandomBlock(Random& random, int depth, bool in_set, std::string name) {
  Block block;
  block.name = std::move(name);
  block.nesting = static_cast<Nesting>(random.Below(4));
  in_set = in_set || block.nesting == Nesting::kSet;
  block.attributes = RandomAttributes(random, {depth - 1, in_set, false, false});
  if (depth > 1 && random.Chance(30))
    block.blocks.push_back(RandomBlock(random, depth - 1, in_set, "b0"));
  return block;
}

// --- configurations ---

class Configurer {
 public:
  Configurer(Random& random, int unknown_percent)
      : random_(random), unknown_percent_(unknown_percent) {}

  cty::Value Object(const Attributes& attributes, const Blocks& blocks) {
    cty::Value::Members members;
    for (const auto& a : attributes) members.emplace(a.name, One(a));
    for (const auto& b : blocks) members.emplace(b.name, One(b));
    return cty::Value::Object(std::move(members));
  }
  cty::Value One(const Attribute& a) {
    if (!a.options.required && !a.options.optional) return cty::Value::Null();
    if (!a.options.required && random_.Chance(40)) return cty::Value::Null();
    if (random_.Chance(unknown_percent_)) return cty::Value::Unknown();
    if (a.type.nesting) return Nested(*a.type.nesting, a.type.attributes, {});
    return Small(random_, a.type.type);
  }
  cty::Value One(const Block& b) {
    if (b.nesting == Nesting::kSingle && random_.Chance(40)) return cty::Value::Null();
    if (random_.Chance(unknown_percent_ / 3)) return cty::Value::Unknown();  // a dynamic block
    return Nested(b.nesting, b.attributes, b.blocks);
  }
  cty::Value Nested(Nesting nesting, const Attributes& attributes, const Blocks& blocks) {
    if (nesting == Nesting::kSingle) return Object(attributes, blocks);
    cty::Value::Elements items;
    cty::Value::Members members;
    for (uint64_t i = random_.Below(4); i > 0; --i) {
      items.push_back(Object(attributes, blocks));
      members.insert_or_assign(std::string(1, static_cast<char>('j' + random_.Below(4))),
                               items.back());
    }
    if (nesting == Nesting::kMap) return cty::Value::Map(std::move(members));
    return nesting == Nesting::kSet ? cty::Value::Set(std::move(items))
                                    : cty::Value::List(std::move(items));
  }

  // `value` with the unknown parts made anew.
  cty::Value ResolveObject(const Attributes& attributes, const Blocks& blocks,
                           const cty::Value& value) {
    if (value.IsUnknown()) return Object(attributes, blocks);
    if (value.IsWhollyKnown()) return value;
    cty::Value::Members members;
    for (const auto& a : attributes) {
      const cty::Value& part = value.Get(a.name);
      members.emplace(a.name, a.type.nesting
                                  ? ResolveNested(*a.type.nesting, a.type.attributes, {}, part)
                              : part.IsUnknown() ? Small(random_, a.type.type)
                                                 : part);
    }
    for (const auto& b : blocks) {
      members.emplace(b.name, ResolveNested(b.nesting, b.attributes, b.blocks, value.Get(b.name)));
    }
    return cty::Value::Object(std::move(members));
  }

 private:
  cty::Value ResolveNested(Nesting nesting, const Attributes& attributes, const Blocks& blocks,
                           const cty::Value& value) {
    if (value.IsUnknown()) return Nested(nesting, attributes, blocks);
    if (value.IsWhollyKnown()) return value;
    if (nesting == Nesting::kSingle) return ResolveObject(attributes, blocks, value);
    if (nesting == Nesting::kMap) {
      cty::Value::Members members;
      for (const auto& [key, item] : value.AsMap())
        members.emplace(key, ResolveObject(attributes, blocks, item));
      return cty::Value::Map(std::move(members));
    }
    cty::Value::Elements items;
    for (const auto& item : value.AsList())
      items.push_back(ResolveObject(attributes, blocks, item));
    return nesting == Nesting::kSet ? cty::Value::Set(std::move(items))
                                    : cty::Value::List(std::move(items));
  }

  Random& random_;
  int unknown_percent_;
};

}  // namespace

Schema RandomSchema(Random& random) {
  Schema schema;
  schema.attributes = RandomAttributes(random, {2, false, true, false});
  schema.attributes.push_back(
      {"id", String(), {.computed = true, .plan_modifiers = {UseStateForUnknown()}}});
  for (uint64_t i = random.Below(3); i > 0; --i) {
    schema.blocks.push_back(RandomBlock(random, 2, false, "b" + std::to_string(i)));
  }
  return schema;
}

cty::Value RandomConfig(Random& random, const Schema& schema, int unknown_percent) {
  return Configurer(random, unknown_percent).Object(schema.attributes, schema.blocks);
}

cty::Value Resolve(Random& random, const Schema& schema, const cty::Value& config) {
  return Configurer(random, 0).ResolveObject(schema.attributes, schema.blocks, config);
}

cty::Value ChangeOne(Random& random, const Schema& schema, const cty::Value& config,
                     int unknown_percent) {
  Configurer configurer(random, unknown_percent);
  const uint64_t at = random.Below(schema.attributes.size() + schema.blocks.size());
  if (at < schema.attributes.size()) {
    return config.With(schema.attributes[at].name, configurer.One(schema.attributes[at]));
  }
  const Block& block = schema.blocks[at - schema.attributes.size()];
  return config.With(block.name, configurer.One(block));
}

}  // namespace sless::framework::testing
