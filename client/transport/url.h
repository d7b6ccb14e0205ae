#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "client/base/result.h"

namespace sless::transport {

/// The parts of a request's URL that matter on the wire.
struct Url {
  bool tls = false;
  std::string unix_path;  ///< not empty: a unix socket, host and port mean nothing
  std::string host;       ///< without the brackets of an IPv6 address
  uint16_t port = 0;
  std::string target;  ///< path and query, starts with '/'

  /// "host:port", "[::1]:80" or "unix:/path": for messages.
  std::string Peer() const;
  /// Value of the Host header; the scheme's own port is left out.
  std::string HostHeader() const;
  /// Equal for two URLs whose requests may share a connection.
  std::string PoolKey() const { return (tls ? "s " : "p ") + Peer(); }
};

/// Error: kInvalidArgument that shows the URL up to its query (which may hold a secret).
base::Result<Url> ParseUrl(std::string_view text);

}  // namespace sless::transport
