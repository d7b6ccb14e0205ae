#pragma once

// The protocol's service: one short method per RPC, decode → engine → encode.

#include <memory>
#include <optional>

#include "client/base/log.h"

namespace grpc {
class Service;
}
namespace sless::framework::engine {
class Engine;
}

namespace sless::plugin {

class RunningCalls;

/// Where log lines go.
struct LogSink {
  int fd = 2;
  std::optional<base::Level> least = base::Level::kWarn;  ///< nothing: no lines at all
};

/// Thread safety: gRPC calls the service from many threads. All references must outlive the service
/// and its server.
std::unique_ptr<grpc::Service> MakeProviderService(framework::engine::Engine& engine,
                                                   RunningCalls& calls, LogSink log);

}  // namespace sless::plugin
