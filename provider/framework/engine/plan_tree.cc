#include "provider/framework/engine/plan_tree.h"

#include "provider/framework/engine/shape.h"

namespace sless::framework::engine {
namespace {

using Attributes = std::vector<Attribute>;
using Blocks = std::vector<Block>;

struct Triple {
  cty::Value config;
  cty::Value prior;
  cty::Value planned;
  bool has_prior = false;
};

void FillObject(PlanNode& node, const Attributes& attributes, const Blocks& blocks,
                const Triple& values);

PlanNode MakeNode(const cty::Path& path, const Triple& values) {
  PlanNode node;
  node.path = path;
  node.config = values.config;
  node.prior = values.prior;
  node.planned = values.planned;
  node.has_prior = values.has_prior;
  return node;
}

// The prior element of each planned element of a set: the very same one, else one that the same
// configuration made.
std::vector<int> PairPrior(const Attributes& attributes, const Blocks& blocks,
                           const cty::Value::Elements& planned,
                           const std::vector<cty::Value>& configs,
                           const cty::Value::Elements& prior) {
  std::vector<int> partners(planned.size(), -1);
  std::vector<bool> used(prior.size(), false);
  const auto pair = [&](const auto& same) {
    for (size_t i = 0; i < planned.size(); ++i) {
      for (size_t j = 0; partners[i] < 0 && j < prior.size(); ++j) {
        if (used[j] || !same(i, j)) continue;
        partners[i] = static_cast<int>(j);
        used[j] = true;
      }
    }
  };
  pair([&](size_t i, size_t j) { return planned[i] == prior[j]; });
  pair([&](size_t i, size_t j) {
    return configs[i].IsKnown() && SameElement(attributes, blocks, configs[i], prior[j]);
  });
  return partners;
}

void AddElement(PlanNode& node, const std::string& name, cty::Path path,
                const Attributes& attributes, const Blocks& blocks, const Triple& values) {
  PlanNode element = MakeNode(path, values);
  element.parts = &attributes;
  element.part_blocks = &blocks;
  if (values.planned.IsKnown() && !values.config.IsUnknown())
    FillObject(element, attributes, blocks, values);
  node.children.push_back({name, std::move(element)});
}

void FillList(PlanNode& node, const Attributes& attributes, const Blocks& blocks,
              const Triple& values) {
  node.shape = PlanNode::Shape::kList;
  const auto at = [](const cty::Value& list, size_t i) {
    return i < list.AsList().size() ? list.AsList()[i] : cty::Value::Null();
  };
  for (size_t i = 0; i < values.planned.AsList().size(); ++i) {
    const bool has_prior = values.has_prior && i < values.prior.AsList().size();
    AddElement(node, "", node.path.Index(static_cast<int64_t>(i)), attributes, blocks,
               {at(values.config, i), at(values.prior, i), values.planned.AsList()[i], has_prior});
  }
}

void FillSet(PlanNode& node, const Attributes& attributes, const Blocks& blocks,
             const Triple& values) {
  node.shape = PlanNode::Shape::kSet;
  const auto& planned = values.planned.AsList();
  const auto& configured = values.config.AsList();
  std::vector<cty::Value> configs(planned.size());
  const auto partners = PairElements(attributes, blocks, configured, planned);
  for (size_t i = 0; i < configured.size(); ++i) {
    if (partners[i] >= 0) configs[static_cast<size_t>(partners[i])] = configured[i];
  }
  const auto priors = PairPrior(attributes, blocks, planned, configs, values.prior.AsList());
  for (size_t i = 0; i < planned.size(); ++i) {
    const bool has_prior = values.has_prior && priors[i] >= 0;
    const cty::Value prior =
        has_prior ? values.prior.AsList()[static_cast<size_t>(priors[i])] : cty::Value::Null();
    AddElement(node, "", node.path, attributes, blocks, {configs[i], prior, planned[i], has_prior});
  }
}

void FillMap(PlanNode& node, const Attributes& attributes, const Blocks& blocks,
             const Triple& values) {
  node.shape = PlanNode::Shape::kMap;
  for (const auto& [key, item] : values.planned.AsMap()) {
    const bool has_prior = values.has_prior && values.prior.AsMap().contains(key);
    AddElement(node, key, node.path.Key(key), attributes, blocks,
               {values.config.Get(key), values.prior.Get(key), item, has_prior});
  }
}

void FillNested(PlanNode& node, Nesting nesting, const Attributes& attributes,
                const Blocks& blocks) {
  node.parts = &attributes;
  node.part_blocks = &blocks;
  const Triple values{node.config, node.prior, node.planned,
                      node.has_prior && node.prior.IsKnown()};
  if (!values.planned.IsKnown() || values.config.IsUnknown()) return;
  switch (nesting) {
    case Nesting::kSingle:
      return FillObject(node, attributes, blocks, values);
    case Nesting::kList:
      return FillList(node, attributes, blocks, values);
    case Nesting::kSet:
      return FillSet(node, attributes, blocks, values);
    case Nesting::kMap:
      return FillMap(node, attributes, blocks, values);
  }
}

void FillObject(PlanNode& node, const Attributes& attributes, const Blocks& blocks,
                const Triple& values) {
  node.shape = PlanNode::Shape::kObject;
  node.children.reserve(attributes.size() + blocks.size());
  const auto add = [&](const std::string& name) -> PlanNode& {
    const Triple part{values.config.Get(name), values.prior.Get(name), values.planned.Get(name),
                      values.has_prior};
    node.children.push_back({name, MakeNode(node.path.Attribute(name), part)});
    return node.children.back().node;
  };
  for (const auto& attribute : attributes) {
    PlanNode& child = add(attribute.name);
    child.attribute = &attribute;
    Expand(child);
  }
  for (const auto& block : blocks) {
    PlanNode& child = add(block.name);
    FillNested(child, block.nesting, block.attributes, block.blocks);
  }
}

}  // namespace

void Expand(PlanNode& node) {
  if (node.attribute == nullptr || !node.attribute->type.nesting) return;
  static const Blocks kNoBlocks;
  FillNested(node, *node.attribute->type.nesting, node.attribute->type.attributes, kNoBlocks);
}

PlanNode BuildTree(const Schema& schema, const cty::Value& config, const cty::Value& prior,
                   const cty::Value& planned) {
  const Triple values{config, prior, planned, prior.IsKnown()};
  PlanNode root = MakeNode(cty::Path(), values);
  FillObject(root, schema.attributes, schema.blocks, values);
  return root;
}

void PlanNode::Set(cty::Value value) {
  shape = Shape::kLeaf;
  children.clear();
  planned = std::move(value);
}

cty::Value PlanNode::Collapse() const {
  if (shape == Shape::kLeaf) return planned;
  if (shape == Shape::kObject || shape == Shape::kMap) {
    cty::Value::Members members;
    for (const auto& [name, child] : children) members.emplace(name, child.Collapse());
    return shape == Shape::kMap ? cty::Value::Map(std::move(members))
                                : cty::Value::Object(std::move(members));
  }
  cty::Value::Elements items;
  items.reserve(children.size());
  for (const auto& [name, child] : children) items.push_back(child.Collapse());
  return shape == Shape::kSet ? cty::Value::Set(std::move(items))
                              : cty::Value::List(std::move(items));
}

}  // namespace sless::framework::engine
