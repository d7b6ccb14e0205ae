#pragma once

// The socket on which a host finds the plugin. It is there before the gRPC server, so that the host
// can be told at once: what it sends meanwhile waits in the socket.

#include <functional>
#include <memory>
#include <thread>

#include "client/base/fd.h"
#include "client/base/result.h"
#include "provider/plugin/handshake.h"

namespace sless::plugin {

class Listener {
 public:
  /// Gets each connection, as a non-blocking descriptor that it must close; called in one thread.
  using Take = std::function<void(int fd)>;

  /// Binds and listens. `endpoint`: a socket's path where nothing is yet, or "127.0.0.1:port" with
  /// port 0 for any free one. Error: kUnavailable with the reason (try another endpoint).
  static base::Result<std::unique_ptr<Listener>> Open(Endpoint endpoint);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// As given, with the port that was bound.
  const Endpoint& endpoint() const { return endpoint_; }

  /// Hands over the connections that wait and all that come. To be called once.
  void Start(Take take);
  /// No connection is handed over after it. May be called more than once, from one thread.
  void Stop();

 private:
  Listener(Endpoint endpoint, base::Fd fd, base::Fd stop_fd)
      : endpoint_(std::move(endpoint)), fd_(std::move(fd)), stop_fd_(std::move(stop_fd)) {}
  void Run(const Take& take);

  Endpoint endpoint_;
  const base::Fd fd_;
  const base::Fd stop_fd_;
  std::thread thread_;
};

}  // namespace sless::plugin
