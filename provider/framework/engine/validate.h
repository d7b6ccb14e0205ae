#pragma once

// The Validate… RPCs. Pure and fast; called twice per run.

#include "provider/framework/engine/engine.h"

namespace sless::framework::engine {

Diagnostics ValidateProvider(const Engine& engine, const cty::Value& config);
Diagnostics ValidateResource(const ResourceEntry& entry, const cty::Value& config,
                             ClientCapabilities capabilities);
Diagnostics ValidateDataSource(const Entry<DataSource>& entry, const cty::Value& config);
Diagnostics ValidateEphemeral(const Entry<EphemeralResource>& entry, const cty::Value& config);
Diagnostics ValidateAction(const Entry<Action>& entry, const cty::Value& config);
Diagnostics ValidateList(const Entry<ListResource>& entry, const cty::Value& config);

/// What all of them share, recursively: required but null, computed but configured, write-only for
/// a host that does not know it, deprecated and configured, whole numbers, then the attribute's
/// validators.
void ValidateValue(const Schema& schema, const cty::Value& config, bool write_only_allowed,
                   Diagnostics& diagnostics);

}  // namespace sless::framework::engine
