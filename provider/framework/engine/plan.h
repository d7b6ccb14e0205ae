#pragma once

// PlanResourceChange.

#include <string>

#include "provider/framework/engine/engine.h"

namespace sless::framework::engine {

struct PlanRequest {
  cty::Value config;    ///< null for a destroy
  cty::Value prior;     ///< null for a create
  cty::Value proposed;  ///< the host's merge of both; null for a destroy
  std::string prior_private;
  cty::Value prior_identity;
  ClientCapabilities capabilities;
};
struct PlanResponse {
  cty::Value planned;
  std::vector<cty::Path> requires_replace;  ///< sorted, each once
  std::string planned_private;
  cty::Value planned_identity;
  Diagnostics diagnostics;
};

/// Defaults → write-only to null → equal by meaning keeps prior → computed to unknown if anything
/// changes → attribute modifiers → the resource's ModifyPlan → checks. Deterministic as long as the
/// resource is.
PlanResponse PlanResource(const Engine& engine, const Call& call, const ResourceEntry& entry,
                          PlanRequest request);

}  // namespace sless::framework::engine
