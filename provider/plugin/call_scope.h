#pragma once

// What is the same for every RPC: registration, logging, and that no exception gets out.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "client/base/clock.h"
#include "provider/framework/diagnostics.h"
#include "provider/framework/engine/engine.h"
#include "provider/plugin/provider_service.h"
#include "provider/plugin/running_calls.h"

namespace sless::plugin {

/// Carries out one RPC.
class CallScope {
 public:
  struct Deps {
    RunningCalls& calls;
    const base::Clock& clock;
    LogSink log;
  };
  /// `type_name` may be empty. `is_cancelled` says whether the host gave the call up.
  CallScope(const Deps& deps, std::string_view rpc, const std::string& type_name,
            std::function<bool()> is_cancelled);

  /// Runs the body. Its error, and every exception, comes back as one more diagnostic: a bug of the
  /// provider, with the RPC's name. Diagnostics are logged.
  framework::Diagnostics Run(const std::function<base::Status(const framework::engine::Call&,
                                                              framework::Diagnostics&)>& body);

 private:
  void LogEnd(const framework::Diagnostics& diagnostics, base::SteadyPoint began);

  const Deps& deps_;
  std::string rpc_;
  std::unique_ptr<base::Logger> protocol_log_;  // of the transport
  std::unique_ptr<base::Logger> provider_log_;  // given to the provider's own code
  RunningCalls::Call running_;
};

}  // namespace sless::plugin
