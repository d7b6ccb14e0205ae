#pragma once

#include <mutex>
#include <string>

#include "client/base/result.h"

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;

namespace sless::transport {

/// The TLS settings, made at the first https request since reading the system's CAs takes tens of
/// milliseconds. Thread safety: Get may be called from any thread.
class TlsSettings {
 public:
  explicit TlsSettings(std::string ca_file) : ca_file_(std::move(ca_file)) {}
  ~TlsSettings();
  /// Owned here. Error: kFailedPrecondition that names ca_file; the next call tries again.
  base::Result<SSL_CTX*> Get();

 private:
  const std::string ca_file_;
  std::mutex mutex_;
  SSL_CTX* context_ = nullptr;  // under mutex_
};

/// A client side of TLS on a non-blocking socket; the handshake checks the certificate's chain and
/// dates. Writes never raise SIGPIPE.
base::Result<SSL*> NewClientSsl(SSL_CTX* context, int fd, const std::string& host);

/// Why a failed handshake did not take the server's certificate and what to do, "" if it failed for
/// another reason.
std::string CertificateProblem(SSL* ssl);
/// After the handshake and before anything is sent: why the certificate is not for `host` (name or
/// IP address), "" if it is.
std::string CertificateNameProblem(SSL* ssl, const std::string& host);

/// OpenSSL's last error of this thread in words.
std::string TlsErrorText();

}  // namespace sless::transport
