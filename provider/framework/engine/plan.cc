// The order of the steps is the contract; each has its reason:
//   A  defaults                       where the configuration is null
//   B  write-only attributes to null  the host's proposal still has them
//   -  equal by meaning keeps prior   before C, so that a change of spelling alone is no change
//   C  computed to unknown            only if something differs already: an unchanged object has an
//   empty plan D  attribute plan modifiers       container before its children E  the resource's
//   ModifyPlan      has the last word F  checks

#include "provider/framework/engine/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "provider/framework/engine/consistency.h"
#include "provider/framework/engine/guard.h"
#include "provider/framework/engine/plan_tree.h"
#include "provider/framework/engine/shape.h"

namespace sless::framework::engine {
namespace {

// A container that is not configured holds what the provider decided: nothing inside is defaulted.
void ApplyDefaults(PlanNode& node) {
  const bool unset = node.config.IsNull();
  if (unset && node.attribute != nullptr && node.attribute->options.default_value) {
    return node.Set(*node.attribute->options.default_value);
  }
  if (unset) return;
  for (auto& [name, child] : node.children) ApplyDefaults(child);
}

void ClearWriteOnly(PlanNode& node) {
  if (node.attribute != nullptr && node.attribute->options.write_only)
    return node.Set(cty::Value::Null());
  for (auto& [name, child] : node.children) ClearWriteOnly(child);
}

void KeepEqualByMeaning(PlanNode& node) {
  if (node.attribute != nullptr && node.attribute->options.semantic_equal) {
    const bool comparable = node.has_prior && node.config.IsKnown() &&
                            node.config.IsWhollyKnown() && node.prior.IsKnown();
    if (comparable && node.attribute->options.semantic_equal(node.prior, node.config))
      return node.Set(node.prior);
  }
  for (auto& [name, child] : node.children) KeepEqualByMeaning(child);
}

void MarkComputed(PlanNode& node) {
  if (node.attribute != nullptr && node.config.IsNull()) {
    const auto& options = node.attribute->options;
    if (options.computed && !options.default_value) node.Set(cty::Value::Unknown());
    return;
  }
  // An element of a set without partner in the configuration cannot be judged part by part; hosts
  // propose none.
  for (auto& [name, child] : node.children) MarkComputed(child);
}

struct Roots {
  const cty::Value& config;
  const cty::Value& prior;
  const cty::Value& planned;
};

bool MayReplace(const std::vector<Attribute>& attributes, const std::vector<Block>& blocks,
                const cty::Value& prior, const cty::Path& path, const Roots& roots);

// The same for the objects in a nested value; where there are none, for one that may come.
bool ElementsMayReplace(Nesting nesting, const std::vector<Attribute>& attributes,
                        const std::vector<Block>& blocks, const cty::Value& prior,
                        const cty::Path& path, const Roots& roots) {
  if (nesting == Nesting::kSingle || prior.size() == 0)
    return MayReplace(attributes, blocks, prior, path, roots);
  for (const auto& item : prior.AsList()) {
    if (MayReplace(attributes, blocks, item, path, roots)) return true;
  }
  for (const auto& [key, item] : prior.AsMap()) {
    if (MayReplace(attributes, blocks, item, path, roots)) return true;
  }
  return false;
}

// True if some part of an object asks for replacement once it is unknown. An object that is unknown
// as a whole stands for unknown parts: if the second plan, where they are known, asked for it
// first, the host would refuse that plan.
bool MayReplace(const std::vector<Attribute>& attributes, const std::vector<Block>& blocks,
                const cty::Value& prior, const cty::Path& path, const Roots& roots) {
  const cty::Value unknown = cty::Value::Unknown();
  for (const auto& attribute : attributes) {
    const cty::Value& part = prior.Get(attribute.name);
    Diagnostics ignored;
    cty::Value planned = unknown;
    bool requires_replace = false;
    for (const auto& modifier : attribute.options.plan_modifiers) {
      ModifyContext context{path,          unknown,          part,         prior.IsKnown(),
                            planned,       requires_replace, roots.config, roots.prior,
                            roots.planned, ignored};
      modifier.modify(context);
    }
    if (requires_replace) return true;
    if (attribute.type.nesting &&
        ElementsMayReplace(*attribute.type.nesting, attribute.type.attributes, {}, part, path,
                           roots)) {
      return true;
    }
  }
  for (const auto& block : blocks) {
    if (ElementsMayReplace(block.nesting, block.attributes, block.blocks, prior.Get(block.name),
                           path, roots))
      return true;
  }
  return false;
}

bool UnknownPartsMayReplace(const PlanNode& node, const Roots& roots) {
  if (node.parts == nullptr || !node.config.IsUnknown()) return false;
  // A list, map or set is seen by its prior elements, everything else as one object.
  const bool many = node.prior.kind() != cty::Value::Kind::kObject;
  return ElementsMayReplace(many ? Nesting::kList : Nesting::kSingle, *node.parts,
                            *node.part_blocks, node.prior, node.path, roots);
}

void RunModifiers(PlanNode& node, const Roots& roots, PlanResponse& response) {
  if (node.attribute != nullptr && !node.attribute->options.plan_modifiers.empty()) {
    const cty::Value before = node.Collapse();
    cty::Value planned = before;
    bool requires_replace = false;
    for (const auto& modifier : node.attribute->options.plan_modifiers) {
      ModifyContext context{node.path,     node.config,         node.prior,   node.has_prior,
                            planned,       requires_replace,    roots.config, roots.prior,
                            roots.planned, response.diagnostics};
      modifier.modify(context);
    }
    if (requires_replace) response.requires_replace.push_back(node.path);
    if (!(planned == before)) {
      node.Set(std::move(planned));
      Expand(node);
    }
  }
  if (UnknownPartsMayReplace(node, roots)) response.requires_replace.push_back(node.path);
  for (auto& [name, child] : node.children) RunModifiers(child, roots, response);
}

// Two elements that a default has made equal would be one in the plan, which the host takes for a
// bug of the provider.
void CheckSets(const PlanNode& node, Diagnostics& diagnostics) {
  if (node.shape == PlanNode::Shape::kSet && node.Collapse().size() < node.children.size()) {
    diagnostics.AddError(
        node.path, "Duplicate Set Element",
        fmt::format(
            "Attribute {} has two elements that are the same once defaults are filled in: remove "
            "one of them.",
            node.path.ToString()));
  }
  for (const auto& [name, child] : node.children) CheckSets(child, diagnostics);
}

cty::Value PlanAttributes(const ResourceEntry& entry, const PlanRequest& request,
                          PlanResponse& response) {
  PlanNode root = BuildTree(entry.schema, request.config, request.prior, request.proposed);
  ApplyDefaults(root);
  ClearWriteOnly(root);
  KeepEqualByMeaning(root);
  if (!(root.Collapse() == request.prior)) MarkComputed(root);
  const cty::Value before = root.Collapse();
  RunModifiers(root, Roots{request.config, request.prior, before}, response);
  CheckSets(root, response.diagnostics);
  return root.Collapse();
}

void ModifyByResource(const Engine& engine, const Call& call, const ResourceEntry& entry,
                      const PlanRequest& request, PlanResponse& response) {
  const Context context = engine.MakeContext(call);
  ModifyPlanResponse modify;
  modify.plan = response.planned;
  modify.requires_replace = std::move(response.requires_replace);
  modify.private_data = PrivateData::Decode(request.prior_private);
  modify.identity = request.prior_identity;
  Guard(fmt::format("Planning {}", entry.type_name), modify.diagnostics, [&] {
    entry.object->ModifyPlan({context, request.config, request.prior, request.capabilities},
                             modify);
  });
  response.diagnostics.Append(modify.diagnostics);
  response.requires_replace = std::move(modify.requires_replace);
  response.planned_private = modify.private_data.Encode();
  response.planned_identity = std::move(modify.identity);
  const cty::Value shaped = Shape(entry.schema, modify.plan);
  const auto fits = cty::Conforms(shaped, entry.type);
  if (shaped.IsNull() == response.planned.IsNull() && fits && !shaped.IsUnknown()) {
    response.planned = shaped;
    return;
  }
  response.diagnostics.AddError(
      "Provider Bug",
      fmt::format("Planning {} gave a value that cannot be used ({}). This is a bug of the "
                  "provider: please report it.",
                  entry.type_name, fits ? "null against existence" : fits.error().message));
}

// Terraform refuses paths that lead nowhere and ignores those whose value does not change.
void FinishReplace(const PlanRequest& request, PlanResponse& response) {
  auto& paths = response.requires_replace;
  std::sort(paths.begin(), paths.end());
  paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
  std::erase_if(paths, [&](const cty::Path& path) {
    return path.empty() || (!request.prior.At(path) && !response.planned.At(path));
  });
}

void CheckIdentity(const ResourceEntry& entry, const PlanRequest& request, PlanResponse& response) {
  if (!entry.identity) {
    response.planned_identity = cty::Value::Null();
    return;
  }
  const bool update =
      !request.prior.IsNull() && !request.config.IsNull() && response.requires_replace.empty();
  const bool changed =
      !request.prior_identity.IsNull() && !(response.planned_identity == request.prior_identity);
  if (update && changed) {
    response.diagnostics.AddError(
        "Unexpected Identity Change",
        fmt::format("Planning an update of {} changed its identity. This is a bug of the "
                    "provider: please report it.",
                    entry.type_name));
  }
}

}  // namespace

PlanResponse PlanResource(const Engine& engine, const Call& call, const ResourceEntry& entry,
                          PlanRequest request) {
  PlanResponse response;
  response.planned = request.proposed;
  response.planned_private = request.prior_private;
  response.planned_identity = request.prior_identity;
  if (!request.proposed.IsNull()) {
    cty::Value planned = request.proposed;
    Guard(fmt::format("Planning {}", entry.type_name), response.diagnostics,
          [&] { planned = PlanAttributes(entry, request, response); });
    response.planned = std::move(planned);
  }
  if (!response.diagnostics.HasError()) ModifyByResource(engine, call, entry, request, response);
  if (request.prior.IsNull()) response.requires_replace.clear();
  FinishReplace(request, response);
  CheckIdentity(entry, request, response);
  if (!response.diagnostics.HasError()) {
    for (const auto& problem :
         CheckPlanned(entry.schema, request.config, request.prior, response.planned)) {
      call.log.Error("plan breaks a rule of the host",
                     {{"resource", entry.type_name}, {"problem", problem}});
    }
  }
  return response;
}

}  // namespace sless::framework::engine
