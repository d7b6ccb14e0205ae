#pragma once

// The transport over sockets, OpenSSL and Boost.Beast's HTTP parser (docs/decisions/0004).

#include <chrono>
#include <memory>
#include <string>

#include "client/transport/transport.h"

namespace sless::transport {

struct TransportOptions {
  /// PEM file of the CAs that https servers must be signed by; "": the system's. Read at the first
  /// https request.
  std::string ca_file;
  /// Idle connections kept in all, and for how long.
  size_t max_idle_connections = 16;
  std::chrono::seconds max_idle_time{60};
};

/// Cheap to make: no thread, no file, no socket before the first request.
std::unique_ptr<Transport> MakeBeastTransport(TransportOptions options = {});

}  // namespace sless::transport
