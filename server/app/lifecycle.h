#pragma once

#include "client/base/log.h"
#include "server/app/drivers.h"
#include "server/config/options.h"

namespace sless::app {

/// Blocks SIGTERM and SIGINT for this thread and all that it starts, ignores SIGPIPE. Before any
/// other thread starts.
void BlockSignals();

/// Serves until SIGTERM or SIGINT, then drains within the grace time; a second signal ends the
/// process at once. Returns the exit code: 0 after a drain, 1 where the server could not start (the
/// reason is on stderr).
int ServeUntilSignal(config::Options options, Environment environment, base::Logger& log);

}  // namespace sless::app
