#pragma once

// The gRPC server of one provider: where it listens, who may connect, which services it has.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/base/clock.h"
#include "client/base/result.h"
#include "provider/framework/provider.h"
#include "provider/plugin/auto_mtls.h"
#include "provider/plugin/handshake.h"
#include "provider/plugin/provider_service.h"

namespace sless::plugin {

/// Thread safety: all methods may be called from any thread.
class Server {
 public:
  struct Options {
    std::unique_ptr<framework::Provider> provider;
    const base::Clock& clock;
    LogSink log;
    /// The socket's path, or a TCP address with a port (0: any port).
    Endpoint endpoint;
    /// Both set: mutual TLS, the host's certificate is the only one that may connect. None:
    /// plaintext.
    std::optional<ServerIdentity> identity;
    std::string client_certificate;
    /// The host asks for the end; called in a thread of gRPC, must only signal.
    std::function<void()> on_shutdown;
  };
  /// Listens and serves. Errors: kUnavailable where the endpoint cannot be bound (try another one),
  /// kInvalidArgument for a client certificate that is none.
  static base::Result<std::unique_ptr<Server>> Start(Options options);
  virtual ~Server() = default;

  /// As given, with the port that was bound.
  virtual const Endpoint& endpoint() const = 0;
  /// Asks running calls to return soon with what they have.
  virtual void StopCalls() = 0;
  /// The same for those that the host gave up. To be called now and then.
  virtual void StopCancelledCalls() = 0;
  /// Takes no new calls, lets running ones end for at most `grace`. False: one does not end, and
  /// then the destructor would wait for it; the process should end without.
  virtual bool Stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace sless::plugin
