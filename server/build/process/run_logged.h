#pragma once

#include <stop_token>

#include "client/base/clock.h"
#include "client/base/spawn.h"
#include "server/build/builder.h"

namespace sless::build {

/// Runs a command; each line of its output goes to `log`. It is killed, with all that it started,
/// at the deadline and on a stop request. Errors: as base::Spawn; kDeadlineExceeded; kCancelled.
base::Result<base::ExitStatus> RunLogged(const base::SpawnOptions& options, base::Deadline deadline,
                                         const base::Clock& clock, const std::stop_token& stop,
                                         const LogLine& log);

}  // namespace sless::build
