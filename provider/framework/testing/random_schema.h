#pragma once

// Random schemas and configurations for the core driver.

#include "provider/cty/testing/random_value.h"
#include "provider/framework/schema.h"

namespace sless::framework::testing {

using cty::testing::Random;

/// A valid schema of a resource with nested attributes, blocks, defaults and modifiers.
Schema RandomSchema(Random& random);
/// A configuration that validation accepts; `unknown_percent` of its parts are unknown.
cty::Value RandomConfig(Random& random, const Schema& schema, int unknown_percent);
/// The configuration with every unknown part replaced by something that fits.
cty::Value Resolve(Random& random, const Schema& schema, const cty::Value& config);
/// `config` with one attribute or block of the root made anew.
cty::Value ChangeOne(Random& random, const Schema& schema, const cty::Value& config,
                     int unknown_percent);

}  // namespace sless::framework::testing
