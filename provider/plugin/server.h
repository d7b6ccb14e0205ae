#pragma once

// The gRPC server of one provider: who may connect, which services it has.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/base/clock.h"
#include "client/base/result.h"
#include "provider/framework/provider.h"
#include "provider/plugin/auto_mtls.h"
#include "provider/plugin/listener.h"
#include "provider/plugin/provider_service.h"

namespace sless::plugin {

/// Thread safety: all methods may be called from any thread.
class Server {
 public:
  struct Options {
    std::unique_ptr<framework::Provider> provider;
    const base::Clock& clock;
    LogSink log;
    /// Where the host finds it.
    std::unique_ptr<Listener> listener;
    /// Both set: mutual TLS, the host's certificate is the only one that may connect. None:
    /// plaintext.
    std::optional<ServerIdentity> identity;
    std::string client_certificate;
    /// The host asks for the end; called in a thread of gRPC, must only signal.
    std::function<void()> on_shutdown;
  };
  /// Serves the connections of the listener. With a client certificate that TLS does not take
  /// nobody gets in. Error: kInternal; nothing helps but to report it.
  static base::Result<std::unique_ptr<Server>> Start(Options options);
  virtual ~Server() = default;

  /// Asks running calls to return soon with what they have.
  virtual void StopCalls() = 0;
  /// The same for those that the host gave up. To be called now and then.
  virtual void StopCancelledCalls() = 0;
  /// Takes no new calls, lets running ones end for at most `grace`. False: one does not end, and
  /// then the destructor would wait for it; the process should end without.
  virtual bool Stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace sless::plugin
