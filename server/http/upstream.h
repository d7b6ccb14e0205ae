#pragma once

// HTTP calls to runners over pooled connections, as coroutines. Include in .cc files only (see
// stream.h).

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/stream.h"

namespace sless::http {

struct UpstreamHead {
  int status = 0;
  Headers headers;
  std::optional<uint64_t> length;  ///< of the body; nullopt: not announced
};

/// One call. Lives on one I/O thread; its methods from one coroutine, FinishSending and Cancel
/// also from others on that thread. The connection goes back to the pool when the whole answer was
/// read, else it is closed with the call.
///
/// Errors of all methods: kUnavailable, reason "NotStarted": no connection, so the peer has seen
/// nothing: safe to try elsewhere;
///   kDeadlineExceeded: the deadline passed; kCancelled: Cancel was called; kInternal, reason
///   "ConnectionLost": the peer closed in the middle or said what is no HTTP.
class UpstreamCall {
 public:
  virtual ~UpstreamCall() = default;
  /// Connects (or takes a pooled connection) and sends the head. `length` nullopt: a chunked body;
  /// 0: none, which the head says only where `headers` do.
  virtual Task<base::Status> Open(std::string method, std::string target, Headers headers,
                                  std::optional<uint64_t> length) = 0;
  virtual Task<base::Status> WriteBody(std::string_view bytes) = 0;
  virtual Task<base::Status> FinishBody() = 0;
  virtual Task<base::Result<UpstreamHead>> ReadHead() = 0;
  /// Next piece, valid until the next call; empty at the end. Each has 30 s from the call of this:
  /// the deadline ends with the head, so that who takes the answer slowly gets all of it.
  virtual Task<base::Result<std::string_view>> ReadBody() = 0;
  /// Nothing more comes from here: a peer that knows RouteOptions::half_close ends what it does,
  /// and its answer can still be read. After the body was written.
  virtual void FinishSending() = 0;
  /// Ends whatever waits, and the connection.
  virtual void Cancel() = 0;
};

/// Keeps idle connections by endpoint and I/O thread; those to endpoints that are gone fall away
/// with later calls. Thread-safe; outlives its calls; must end before the IoPool.
class Upstream {
 public:
  /// `idle_time`: a connection unused for so long is closed. Well below the idle timeout of the
  /// runner's server.
  explicit Upstream(std::chrono::milliseconds idle_time = std::chrono::seconds(20));
  ~Upstream();
  /// A call to `endpoint` ("unix:/path" or "host:port" with a numeric host), made on the I/O thread
  /// that `executor` belongs to.
  std::unique_ptr<UpstreamCall> Call(boost::asio::any_io_executor executor, std::string endpoint,
                                     std::chrono::steady_clock::time_point deadline);

  struct Pool;

 private:
  std::shared_ptr<Pool> pool_;
};

}  // namespace sless::http
