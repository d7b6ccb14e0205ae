#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "client/base/address.h"
#include "client/base/log.h"
#include "server/auth/authenticator.h"
#include "server/gateway/invoker.h"
#include "server/gateway/serving.h"
#include "server/http/router.h"
#include "server/http/server.h"
#include "server/observe/metrics.h"
#include "server/runtime/runtime.h"

namespace sless::gateway {

struct GatewayOptions {
  size_t max_waiting = 1000;          ///< calls of one function that wait for a slot; more are 503
  size_t max_body = 6 * 1024 * 1024;  ///< bytes of a request body; more is 413
  size_t max_buffered =
      256 * 1024 * 1024;  ///< bytes of all request bodies until their answer begins; more is 503
  size_t max_buffered_of_one = 64 * 1024 * 1024;  ///< the same of one function
  /// Of a request body above this only so much is read before a slot is taken; the rest goes to the
  /// replica as it comes.
  size_t first_bytes = 64 * 1024;
  /// How long a slot is held for the rest. A body that takes longer is read whole without one.
  std::chrono::milliseconds upload_patience{500};
  std::string external_scheme = "http";  ///< what functions see as X-Forwarded-Proto
  base::AddressSet trusted_proxies;      ///< peers whose X-Forwarded-* count, see OriginOf
  /// A replica that has refused every call for so long (at least 5) while it runs none is
  /// replaced. Above the runner's 5 s, for which a call waits for a process that is being replaced.
  std::chrono::milliseconds refusing_for{10'000};
  bool restoring =
      false;  ///< until Restored(), calls of functions that are not there yet wait for them (10 s)
};

/// The way of every call to a function: HTTP under /fn/, the authenticated invoke, jobs and cron.
///
/// Bodies are streamed both ways, see docs/decisions/0015: that of a request while its client keeps
/// up, so that a slow one holds no replica. What has come of it is kept, so that a call that was
/// refused before it began can be repeated elsewhere. timeout_sec counts from when the replica has
/// the whole request; the gateway gives the runner 250 ms more, since the runner's own answer tells
/// more.
class Gateway : public Serving, public Invoker {
 public:
  /// All outlive the gateway.
  struct Deps {
    http::IoPool& io;
    runtime::Runtime& runtime;
    auth::Authenticator& auth;
    observe::Registry& metrics;
    const base::Clock& clock;
    base::Logger& log;
  };
  /// Adds /fn/{namespace}/{name} with all below it, and POST
  /// /v1/namespaces/{namespace}/functions/{name}/invoke. Call before the server starts; the gateway
  /// outlives the server.
  virtual void RegisterRoutes(http::Router& router) = 0;
  /// All functions of the store were published: what is not known now is a 404. See
  /// GatewayOptions::restoring.
  virtual void Restored() = 0;
  /// Refuses new calls and ends those that wait (kUnavailable). Call after Server::Stop and before
  /// Runtime::Shutdown. Idempotent.
  virtual void Stop() = 0;
};

/// Sets the runtime's OnChange.
std::unique_ptr<Gateway> MakeGateway(Gateway::Deps deps, GatewayOptions options = {});

}  // namespace sless::gateway
