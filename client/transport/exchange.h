#pragma once

#include "client/transport/connection.h"
#include "client/transport/transport.h"
#include "client/transport/url.h"

namespace sless::transport {

/// Checks what the caller gave. Error: kInvalidArgument.
base::Status CheckRequest(const Request& request);

/// What became of one request on one connection.
struct Outcome {
  base::Result<Response> response;
  bool any_sent = false;      ///< the kernel took at least one byte
  bool any_received = false;  ///< at least one byte of an answer came
  bool reusable = false;      ///< the connection may carry another request
};

/// Sends `request` over `connection` and reads the answer. An answer that comes while the body is
/// still being sent ends the sending.
Outcome RunExchange(const Request& request, const Url& url, Connection& connection, Wait& wait);

}  // namespace sless::transport
