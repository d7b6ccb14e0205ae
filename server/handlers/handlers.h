#pragma once

// The REST API under /v1, and /healthz, /readyz, /metrics.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/base/clock.h"
#include "client/base/log.h"
#include "server/artifact/artifact_store.h"
#include "server/auth/authenticator.h"
#include "server/http/message.h"
#include "server/http/router.h"
#include "server/invocations/log_store.h"
#include "server/observe/metrics.h"
#include "server/store/object_store.h"

namespace sless::handlers {

/// All outlive the server that has the routes.
struct Deps {
  store::ObjectStore& store;
  artifact::ArtifactStore& artifacts;
  invocations::LogStore& logs;
  auth::Authenticator& auth;
  observe::Registry& metrics;
  const base::Clock& clock;
  base::Logger& log;
  http::WakeHub& hub;                       ///< woken by WakeOnChange
  std::string external_url;                 ///< without a final '/'
  std::vector<std::string> runtimes;        ///< that this host can run
  std::function<base::Status()> readiness;  ///< must not block; kUnavailable: why /readyz says 503;
                                            ///< its message is shown to everybody
};

/// Adds every route. All under /v1 need a bearer token; /healthz, /readyz and /metrics need none.
void RegisterRoutes(http::Router& router, const Deps& deps);

/// Wakes the long polls of an object when the store writes it. Keep the subscription as long as the
/// server runs.
std::unique_ptr<store::Subscription> WakeOnChange(store::ObjectStore& store, http::WakeHub& hub);

}  // namespace sless::handlers
