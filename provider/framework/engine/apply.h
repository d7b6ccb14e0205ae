#pragma once

// ApplyResourceChange: create, update, delete.

#include <string>

#include "provider/framework/engine/engine.h"

namespace sless::framework::engine {

struct ApplyRequest {
  cty::Value config;   ///< null for a delete
  cty::Value prior;    ///< null for a create
  cty::Value planned;  ///< null for a delete
  std::string planned_private;
  cty::Value planned_identity;
};
struct ApplyResponse {
  cty::Value state;
  std::string private_data;
  cty::Value identity;
  Diagnostics diagnostics;
};

/// The state in the answer always conforms to the schema and is wholly known, so that no host loses
/// an object.
ApplyResponse ApplyResource(const Engine& engine, const Call& call, const ResourceEntry& entry,
                            ApplyRequest request);

}  // namespace sless::framework::engine
