#pragma once

// The configuration, the prior state and the plan of one object side by side, attribute by
// attribute. Elements of sets are paired once, before anything is changed, and keep their partners
// through all steps.

#include <string>
#include <vector>

#include "provider/framework/schema.h"

namespace sless::framework::engine {

struct PlanChild;

struct PlanNode {
  enum class Shape : uint8_t { kLeaf, kObject, kList, kSet, kMap };
  Shape shape = Shape::kLeaf;
  const Attribute* attribute = nullptr;  ///< nullptr for the root, blocks, and elements
  const std::vector<Attribute>* parts =
      nullptr;  ///< what an object here consists of, nullptr for plain attributes
  const std::vector<Block>* part_blocks = nullptr;
  cty::Path path;
  cty::Value config;
  cty::Value prior;
  cty::Value planned;  ///< kLeaf only; other shapes are the sum of their children
  bool has_prior = false;
  std::vector<PlanChild> children;

  cty::Value Collapse() const;
  /// Makes it a leaf with this value.
  void Set(cty::Value value);
};

struct PlanChild {
  std::string name;  ///< of an attribute, key of a map, "" for an element
  PlanNode node;
};

PlanNode BuildTree(const Schema& schema, const cty::Value& config, const cty::Value& prior,
                   const cty::Value& planned);
/// Splits the leaf `node` of an attribute into children again, from its planned value.
void Expand(PlanNode& node);

}  // namespace sless::framework::engine
