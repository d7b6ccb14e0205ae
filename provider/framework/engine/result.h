#pragma once

// The last step of every call that returns a state.

#include <string_view>

#include "provider/framework/engine/catalog.h"

namespace sless::framework::engine {

/// Makes response.state and response.identity such that the host can store them: of the schema's
/// type (else `fallback` and an error), write-only null, blocks present, spelled as in `reference`
/// where the meaning is the same, wholly known (unknown parts become null; an error per part where
/// there was none). `what` names the call in errors.
void Usable(const ResourceEntry& entry, std::string_view what, const cty::Value& reference,
            const cty::Value& fallback, StateResponse& response);

}  // namespace sless::framework::engine
