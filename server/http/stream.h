#pragma once

// The coroutine form of handlers, for proxying: bodies stream both ways. Brings in Boost.Asio's
// coroutine type, so include it in .cc files only.

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/router.h"
#include "server/http/server.h"

namespace sless::http {

template <class T>
using Task = boost::asio::awaitable<T>;

/// One request and its answer. Lives on one I/O thread; all methods only from the handler's
/// coroutine.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const Request& request() const = 0;
  /// The announced length of the body; nullopt for a chunked one. 0: no body.
  virtual std::optional<uint64_t> body_length() const = 0;
  /// Next piece of the body (at most 64 KiB), valid until the next call; empty at the end. Errors:
  /// kTooLarge above the route's limit; kDeadlineExceeded, reason "BodyTooSlow", where the whole
  /// takes too long (ServerOptions::body_time); kCancelled where the client went away or the next
  /// piece did not come in time; kInvalidArgument for broken framing: after these answer and
  /// return. kDeadlineExceeded, reason "NotYet": `until` is over, and nothing was read; read on at
  /// will.
  virtual Task<base::Result<std::string_view>> ReadBody(
      std::chrono::steady_clock::time_point until =
          std::chrono::steady_clock::time_point::max()) = 0;
  /// The whole answer in one call.
  virtual Task<base::Status> Respond(Response response) = 0;
  /// Head of a streamed answer (response.body is not sent). `length`: of the body; nullopt:
  /// chunked, or to the end of the connection for HTTP/1.0. Where the status or HEAD allows no
  /// body, WriteBody drops what it gets. Error: kCancelled, the client went away.
  virtual Task<base::Status> StartResponse(Response head, std::optional<uint64_t> length) = 0;
  virtual Task<base::Status> WriteBody(std::string_view bytes) = 0;
  virtual Task<base::Status> FinishBody() = 0;
  /// The answer cannot be completed: the connection is closed, so that the client sees that it is
  /// cut.
  virtual void Abort() = 0;
  /// Runs `work` on a worker thread, once one is free, and comes back.
  virtual Task<void> OnWorker(std::function<void()> work) = 0;
};

// In coroutines write each co_await as a statement of its own (`auto x = co_await f();`): GCC 12
// miscompiles it inside conditions and conditional expressions, and where an argument is a braced
// temporary.
using StreamHandler = std::function<Task<void>(Exchange&)>;
/// Registers a coroutine handler: it starts when the head is read, and answers by the exchange.
void AddStream(Router& router, std::string method, std::string pattern, StreamHandler handler,
               RouteOptions options = {});

/// The executor of the I/O thread whose turn it is.
boost::asio::any_io_executor NextExecutor(IoPool& io);

}  // namespace sless::http
