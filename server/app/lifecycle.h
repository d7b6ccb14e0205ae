#pragma once

#include "client/base/log.h"
#include "server/app/drivers.h"
#include "server/config/options.h"

namespace sless::app {

/// Blocks SIGTERM, SIGINT and SIGHUP (where it is not ignored) for this thread and all that it
/// starts, ignores SIGPIPE. Before any other thread starts.
void BlockSignals();

/// Serves until SIGTERM, SIGINT or SIGHUP, then drains within the grace time; a second signal
/// (SIGHUP does not count) ends the process at once. Returns the exit code: 0 after a drain, 1
/// where the server could not start (the reason is in the log). Where the limit of open files does
/// not allow http.max_connections, it serves fewer and warns.
int ServeUntilSignal(config::Options options, Environment environment, base::Logger& log);

}  // namespace sless::app
