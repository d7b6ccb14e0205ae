#pragma once

// Automatic mutual TLS: a key and a certificate for this run alone.

#include <string>

#include "client/base/clock.h"
#include "client/base/result.h"
#include "client/base/secret.h"

namespace sless::plugin {

/// Who the server is for this run.
struct ServerIdentity {
  base::Secret key_pem;
  std::string certificate_pem;
  std::string certificate_der;
};

/// Makes a P-256 key and a self-signed certificate for "localhost", valid from a minute before
/// `now` for a year. Error: kInternal with the library's reason; nothing helps but to report it.
base::Result<ServerIdentity> MakeServerIdentity(base::TimePoint now);

/// OK if `pem` is the PEM text of a certificate; its fields are left to TLS, as reading them twice
/// would cost each start. Error: kInvalidArgument; says what the host sent, for a start-up message.
base::Status CheckCertificate(const std::string& pem);

}  // namespace sless::plugin
