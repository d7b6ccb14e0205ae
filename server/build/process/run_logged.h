#pragma once

#include <functional>
#include <stop_token>

#include "client/base/clock.h"
#include "client/base/spawn.h"
#include "server/build/builder.h"

namespace sless::build {

/// Asked now and then while a command runs; an error ends it.
using Watch = std::function<base::Status()>;

/// Runs a command; each line of its output goes to `log`. It is killed, with all that it started,
/// at the deadline, on a stop request and when `watch` (if any) says so. Errors: as base::Spawn;
/// kDeadlineExceeded; kCancelled; those of `watch`.
base::Result<base::ExitStatus> RunLogged(const base::SpawnOptions& options, base::Deadline deadline,
                                         const base::Clock& clock, const std::stop_token& stop,
                                         const LogLine& log, const Watch& watch = {});

}  // namespace sless::build
