#pragma once

#include <memory>
#include <string>

#include "client/transport/resolver.h"
#include "client/transport/url.h"
#include "client/transport/wait.h"

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;

namespace sless::transport {

/// One connected socket, with or without TLS. All calls return at once; waiting is the caller's.
/// Not thread-safe.
class Connection {
 public:
  /// Connects, for https with the TLS handshake; `tls` is used where url.tls.
  /// Errors: kUnavailable, kFailedPrecondition (certificate), those of Wait.
  static base::Result<std::unique_ptr<Connection>> Open(const Url& url, SSL_CTX* tls,
                                                        Resolver& resolver, Wait& wait);
  ~Connection();
  Connection(const Connection&) = delete;

  struct Io {
    enum class What { kBytes, kWantRead, kWantWrite, kEnd, kLost } what;
    size_t bytes = 0;
    std::string why;  ///< of kLost
  };
  Io Read(char* out, size_t size);
  Io Write(const char* data, size_t size);
  /// True if an idle connection still stands: the peer has neither closed nor said anything.
  bool IdleAndAlive();
  int fd() const { return fd_; }

 private:
  explicit Connection(int fd) : fd_(fd) {}
  base::Status Handshake(const Url& url, SSL_CTX* tls, Wait& wait);
  Io TlsOutcome(int result);

  int fd_;
  SSL* ssl_ = nullptr;
};

}  // namespace sless::transport
