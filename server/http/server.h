#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "client/base/log.h"
#include "client/base/result.h"
#include "server/http/listener.h"
#include "server/http/router.h"
#include "server/observe/metrics.h"

namespace sless::http {

/// I/O threads, each with an event loop of its own; a connection stays on one of them. Shared by
/// the server and by upstream calls. Must outlive every Server and Upstream that uses it.
/// Thread-safe.
class IoPool {
 public:
  /// `threads` 0: min(cores, 4).
  explicit IoPool(int threads = 0);
  ~IoPool();
  IoPool(const IoPool&) = delete;
  IoPool& operator=(const IoPool&) = delete;
  /// Ends the threads, whatever is running. Idempotent.
  void Stop();

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

struct ServerOptions {
  std::string listen = "127.0.0.1:0";   ///< see Listener::Open; not used with a listener
  int workers = 32;                     ///< threads for handlers that may block, 1 to 1024
  size_t max_queued = 1024;             ///< requests that wait for a worker; more are 503
  size_t max_connections = 4096;        ///< more are answered 503 and closed
  size_t max_header_bytes = 16 * 1024;  ///< request line and headers; more is 431
  std::chrono::milliseconds header_timeout{
      10'000};  ///< from the first byte of a head (or the accept) to its end; then closed
  std::chrono::milliseconds idle_timeout{75'000};  ///< between two requests of a connection
  std::chrono::milliseconds body_timeout{30'000};  ///< between two pieces of a body, both ways
  /// What a client may take to send a body, and a second more for each `body_rate` bytes that have
  /// come; more is 408.
  std::chrono::milliseconds body_time{60'000};
  size_t body_rate = 64 * 1024;
};

/// An HTTP/1.1 server. Handlers never run on I/O threads (but deferred and stream handlers, which
/// must not block). Each answer has X-Request-Id; each request gives one log line and metrics
/// (sless_http_requests_total, sless_http_request_duration_seconds, sless_http_connections). Thread
/// safety: address() and Stop() from any thread.
class Server {
 public:
  struct Deps {
    IoPool& io;
    base::Logger& log;
    observe::Registry& metrics;
  };
  /// Listens and serves at once. Errors: those of Listener::Open.
  static base::Result<std::unique_ptr<Server>> Start(ServerOptions options, Router router,
                                                     Deps deps);
  /// Serves what waits at `listener`, which is taken.
  static std::unique_ptr<Server> Start(Listener& listener, ServerOptions options, Router router,
                                       Deps deps);
  ~Server();

  /// "127.0.0.1:40123" with the real port, or "unix:/path".
  const std::string& address() const;
  /// Open connections.
  size_t connections() const;
  /// Stops accepting, closes idle connections, lets running requests end for at most `grace`, then
  /// closes the rest. Blocks. Long polls answer at once with what there is. Idempotent.
  void Stop(std::chrono::milliseconds grace);

  struct Impl;

 private:
  explicit Server(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace sless::http
