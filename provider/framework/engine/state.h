#pragma once

// State from elsewhere: upgrade, import, move, identity upgrade, generated configuration.

#include <string>

#include "provider/framework/engine/engine.h"

namespace sless::framework::engine {

struct UpgradeRequest {
  int64_t version = 0;  ///< of the schema that wrote it
  std::string_view
      json;  ///< RawState.json; empty: only the old flatmap form was there, which is refused
};
struct UpgradeResponse {
  cty::Value state;
  Diagnostics diagnostics;
};
UpgradeResponse UpgradeState(const Engine& engine, const Call& call, const ResourceEntry& entry,
                             const UpgradeRequest& request);

/// Result in `state`: the identity, of the current identity schema.
UpgradeResponse UpgradeIdentity(const ResourceEntry& entry, const UpgradeRequest& request);

struct ImportStateRequest {
  std::string id;       ///< "" when imported by identity
  cty::Value identity;  ///< null when imported by id
};
struct ImportedResource {
  cty::Value state;
  std::string private_data;
  cty::Value identity;
  Diagnostics diagnostics;
};
ImportedResource ImportResource(const Engine& engine, const Call& call, const ResourceEntry& entry,
                                const ImportStateRequest& request);

struct MoveStateRequest {
  std::string source_provider;
  std::string source_type;
  int64_t source_version = 0;
  std::string_view source_json;
  std::string source_private;
};
ImportedResource MoveResource(const Engine& engine, const Call& call, const ResourceEntry& entry,
                              const MoveStateRequest& request);

/// The configuration that makes this state: what only the provider sets, sensitive and deprecated
/// attributes are null.
cty::Value GenerateConfig(const ResourceEntry& entry, const cty::Value& state);

}  // namespace sless::framework::engine
