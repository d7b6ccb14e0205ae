#pragma once

#include <string>

#include "client/api/function.h"

namespace sless::domain {

/// A hash of what makes a new revision: source.hash, code_hash, runtime, entrypoint, environment,
/// memory_mb, timeout_sec and concurrency. Two specs with one hash run the same way; scaling,
/// labels, build_timeout_sec and the source's path are not in it. Stable over versions of the
/// server: it is stored.
std::string RevisionInput(const api::FunctionSpec& spec);

}  // namespace sless::domain
