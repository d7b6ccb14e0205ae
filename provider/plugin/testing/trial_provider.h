#pragma once

// A provider that does what a test asks for, through the attribute `act` of its one resource
// `trial_thing`:
// "" (make it), "wait" (until told to stop; then an error beside the state), "sleep" (`wait_ms`),
// "throw", "big" (an answer of 6 MB), "crash", "env" (are the host's variables gone?), "hang" (deaf
// to everything, for `wait_ms`). One function `repeat(text, count)`, one action `trial_steps`, one
// data source.

#include <memory>

#include "provider/framework/provider.h"

namespace sless::plugin::testing {

std::unique_ptr<framework::Provider> MakeTrialProvider();

/// Type of a `trial_thing`: id, name, act, wait_ms, text.
cty::Type ThingType();
/// An object of that type: `id` and `text` as given, the rest from the arguments.
cty::Value Thing(std::string_view name, std::string_view act, int64_t wait_ms, cty::Value computed);

}  // namespace sless::plugin::testing
