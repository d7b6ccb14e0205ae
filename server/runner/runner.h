#pragma once

// The HTTP side of sless-runner over its engine (docs/runner.md).

#include <string>

#include "client/base/clock.h"
#include "server/http/router.h"
#include "server/runner/engine.h"

namespace sless::runner {

inline constexpr size_t kMaxEvent = 6 * 1024 * 1024;  ///< bytes of a request's body

/// GET /healthz, POST /event, /http/…. `engine` and `clock` outlive the router.
http::Router MakeRouter(Engine& engine, const base::Clock& clock);

}  // namespace sless::runner
