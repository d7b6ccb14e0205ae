#pragma once

#include <string>

#include "client/base/result.h"

namespace sless::app {

/// `listen` with port 0 replaced by a port that is free now, so that the URLs that this server
/// hands out are known before it listens. Anything else stays as it is. Errors: kInvalidArgument,
/// kUnavailable.
base::Result<std::string> ResolvePort(const std::string& listen);

/// The URL of a server that listens on `address` (HOST:PORT) as clients on this machine may use it:
/// a wildcard host becomes loopback.
std::string UrlOfAddress(const std::string& address);

}  // namespace sless::app
