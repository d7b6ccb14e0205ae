#pragma once

// Terraform's own rules for plans and results, so that a breach is found here and not by the user:
// what the host would say is wrong, as texts `path: reason`; empty if nothing is.

#include <string>
#include <vector>

#include "provider/framework/schema.h"

namespace sless::framework::engine {

/// A plan against the configuration and the prior state.
std::vector<std::string> CheckPlanned(const Schema& schema, const cty::Value& config,
                                      const cty::Value& prior, const cty::Value& planned);

/// The result of an apply without error, or a second plan (`allow_unknown`), against the plan:
/// every known value must be there again.
std::vector<std::string> CheckApplied(const Schema& schema, const cty::Value& planned,
                                      const cty::Value& actual, bool allow_unknown = false);

}  // namespace sless::framework::engine
