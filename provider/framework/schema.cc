#include "provider/framework/schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace sless::framework {

namespace {

cty::Type Nested(Nesting nesting, cty::Type object) {
  switch (nesting) {
    case Nesting::kSingle:
      return object;
    case Nesting::kList:
      return cty::Type::List(std::move(object));
    case Nesting::kSet:
      return cty::Type::Set(std::move(object));
    case Nesting::kMap:
      return cty::Type::Map(std::move(object));
  }
  return object;
}

AttributeType Plain(cty::Type type) {
  return AttributeType{std::move(type), std::nullopt, {}, false};
}

AttributeType NestedType(Nesting nesting, std::vector<Attribute> attributes) {
  cty::Type type = Nested(nesting, ImpliedType(attributes, {}));
  return AttributeType{std::move(type), nesting, std::move(attributes), false};
}

}  // namespace

AttributeType String() { return Plain(cty::Type::String()); }
AttributeType Bool() { return Plain(cty::Type::Bool()); }
AttributeType Number() { return Plain(cty::Type::Number()); }
AttributeType Int64() { return AttributeType{cty::Type::Number(), std::nullopt, {}, true}; }
AttributeType Dynamic() { return Plain(cty::Type::Dynamic()); }
AttributeType ListOf(cty::Type element) { return Plain(cty::Type::List(std::move(element))); }
AttributeType SetOf(cty::Type element) { return Plain(cty::Type::Set(std::move(element))); }
AttributeType MapOf(cty::Type element) { return Plain(cty::Type::Map(std::move(element))); }
AttributeType ObjectOf(cty::Type::Attributes attributes) {
  return Plain(cty::Type::Object(std::move(attributes)));
}
AttributeType SingleNested(std::vector<Attribute> a) {
  return NestedType(Nesting::kSingle, std::move(a));
}
AttributeType ListNested(std::vector<Attribute> a) {
  return NestedType(Nesting::kList, std::move(a));
}
AttributeType SetNested(std::vector<Attribute> a) {
  return NestedType(Nesting::kSet, std::move(a));
}
AttributeType MapNested(std::vector<Attribute> a) {
  return NestedType(Nesting::kMap, std::move(a));
}

cty::Type ImpliedType(const std::vector<Attribute>& attributes, const std::vector<Block>& blocks) {
  cty::Type::Attributes result;
  for (const auto& attribute : attributes) result.emplace(attribute.name, attribute.type.type);
  for (const auto& block : blocks) {
    result.emplace(block.name, Nested(block.nesting, ImpliedType(block.attributes, block.blocks)));
  }
  return cty::Type::Object(std::move(result));
}

cty::Type ImpliedType(const Schema& schema) {
  return ImpliedType(schema.attributes, schema.blocks);
}

cty::Type ImpliedType(const IdentitySchema& schema) {
  cty::Type::Attributes result;
  for (const auto& attribute : schema.attributes) result.emplace(attribute.name, attribute.type);
  return cty::Type::Object(std::move(result));
}

const Attribute* FindAttribute(const std::vector<Attribute>& attributes, std::string_view name) {
  const auto it = std::find_if(attributes.begin(), attributes.end(),
                               [&](const auto& a) { return a.name == name; });
  return it == attributes.end() ? nullptr : &*it;
}

const Attribute* FindAttribute(const Schema& schema, const cty::Path& path) {
  const std::vector<Attribute>* attributes = &schema.attributes;
  const std::vector<Block>* blocks = &schema.blocks;
  const Attribute* found = nullptr;
  for (const auto& step : path.steps()) {
    if (step.kind != cty::Step::Kind::kAttribute)
      continue;  // an element: the same object's attributes follow
    found = attributes == nullptr ? nullptr : FindAttribute(*attributes, step.name);
    if (found != nullptr) {
      attributes = &found->type.attributes;
      blocks = nullptr;
      continue;
    }
    if (blocks == nullptr) return nullptr;
    const auto block = std::find_if(blocks->begin(), blocks->end(),
                                    [&](const auto& b) { return b.name == step.name; });
    if (block == blocks->end()) return nullptr;
    attributes = &block->attributes;
    blocks = &block->blocks;
  }
  return found;
}

namespace {

bool ValidName(std::string_view name) {
  if (name.empty() || name[0] < 'a' || name[0] > 'z') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool Reserved(std::string_view name, SchemaUse use) {
  static constexpr std::array<std::string_view, 7> kObject = {
      "connection", "count", "depends_on", "for_each", "lifecycle", "provider", "provisioner"};
  if (use == SchemaUse::kProvider) return name == "alias" || name == "version";
  if (use == SchemaUse::kList || use == SchemaUse::kAction)
    return false;  // their schema is that of a `config` block
  return std::find(kObject.begin(), kObject.end(), name) != kObject.end();
}

class Checker {
 public:
  explicit Checker(SchemaUse use) : use_(use) {}

  void Level(const std::string& prefix, const std::vector<Attribute>& attributes,
             const std::vector<Block>& blocks, bool in_set) {
    std::set<std::string> names;
    for (const auto& attribute : attributes) {
      Name(prefix, attribute.name, names);
      One(prefix + attribute.name, attribute, in_set);
    }
    for (const auto& block : blocks) {
      Name(prefix, block.name, names);
      One(prefix + block.name, block, in_set);
    }
  }
  std::vector<std::string> Take() { return std::move(problems_); }

 private:
  void Report(const std::string& path, std::string_view problem) {
    problems_.push_back(fmt::format("{}: {}", path, problem));
  }
  void Name(const std::string& prefix, const std::string& name, std::set<std::string>& names) {
    if (!ValidName(name))
      Report(prefix + name,
             "names have lower-case letters, digits and '_' and begin with a letter");
    if (!names.insert(name).second) Report(prefix + name, "declared twice");
    if (prefix.empty() && Reserved(name, use_)) Report(name, "this name is reserved");
  }

  void One(const std::string& path, const Attribute& attribute, bool in_set) {
    const auto& o = attribute.options;
    Flags(path, o, in_set);
    if (o.default_value) {
      if (const auto fits = cty::Conforms(*o.default_value, attribute.type.type); !fits) {
        Report(path, "default does not fit the type: " + fits.error().message);
      }
      if (!o.default_value->IsKnown()) Report(path, "default must be known and not null");
    }
    const auto& nesting = attribute.type.nesting;
    if (!nesting) return PlainType(path, attribute.type.type, in_set);
    if (attribute.type.attributes.empty()) Report(path, "a nested attribute needs attributes");
    if (*nesting != Nesting::kSingle && attribute.type.type.HasDynamic()) {
      Report(path, "no dynamic inside nested lists, sets and maps");
    }
    Level(path + ".", attribute.type.attributes, {}, in_set || *nesting == Nesting::kSet);
  }

  void Flags(const std::string& path, const AttributeOptions& o, bool in_set) {
    if (!o.required && !o.optional && !o.computed)
      Report(path, "must be required, optional or computed");
    if (o.required && o.optional) Report(path, "cannot be both required and optional");
    if (o.required && o.computed) Report(path, "cannot be both required and computed");
    if (o.write_only && o.computed) Report(path, "a write-only attribute cannot be computed");
    if (o.write_only && in_set) Report(path, "no write-only attribute inside a set");
    if (o.write_only && use_ != SchemaUse::kResource)
      Report(path, "only resources have write-only attributes");
    if (o.default_value && !o.computed) Report(path, "a default needs computed");
    if (o.default_value && use_ != SchemaUse::kResource)
      Report(path, "only resources have defaults");
    if (!o.plan_modifiers.empty() && use_ != SchemaUse::kResource)
      Report(path, "only resources have plan modifiers");
    if (o.computed && use_ == SchemaUse::kProvider)
      Report(path, "a provider's configuration has nothing computed");
    if (o.computed && (use_ == SchemaUse::kAction || use_ == SchemaUse::kList))
      Report(path, "nothing is computed here");
    if (!o.optional && !o.required && !o.validators.empty())
      Report(path, "nobody sets it: validators never run");
  }

  void PlainType(const std::string& path, const cty::Type& type, bool in_set) {
    if (type.IsDynamic()) {
      if (in_set) Report(path, "no dynamic inside a set");
      return;
    }
    if (type.HasDynamic()) Report(path, "no dynamic inside a collection or object");
  }

  void One(const std::string& path, const Block& block, bool in_set) {
    const bool counted = block.nesting == Nesting::kList || block.nesting == Nesting::kSet;
    if (block.min_items < 0 || block.max_items < 0)
      Report(path, "min_items and max_items are not negative");
    if (counted && block.max_items != 0 && block.min_items > block.max_items)
      Report(path, "min_items above max_items");
    if (block.nesting == Nesting::kMap && (block.min_items != 0 || block.max_items != 0)) {
      Report(path, "a map block has no limits");
    }
    if (block.nesting == Nesting::kSingle &&
        (block.min_items != block.max_items || block.max_items > 1)) {
      Report(path, "a single block has min_items = max_items, 0 or 1");
    }
    const auto type = ImpliedType(block.attributes, block.blocks);
    if (block.nesting != Nesting::kSingle && type.HasDynamic())
      Report(path, "no dynamic inside list, set and map blocks");
    Level(path + ".", block.attributes, block.blocks, in_set || block.nesting == Nesting::kSet);
  }

  SchemaUse use_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> ValidateSchema(const Schema& schema, SchemaUse use) {
  Checker checker(use);
  checker.Level("", schema.attributes, schema.blocks, false);
  auto problems = checker.Take();
  if (schema.version < 0) problems.push_back("version is not negative");
  return problems;
}

}  // namespace sless::framework
