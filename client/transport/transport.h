#pragma once

// HTTP out, for whoever calls an HTTP server: the interface and its data.

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/base/clock.h"
#include "client/base/result.h"

namespace sless::transport {

/// Header fields in their order; names compare without case.
class Headers {
 public:
  Headers() = default;
  Headers(std::initializer_list<std::pair<std::string, std::string>> fields) : fields_(fields) {}
  void Add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  /// Replaces every field of that name.
  void Set(std::string_view name, std::string value);
  /// The first field of that name, "" if none.
  std::string_view Get(std::string_view name) const;
  bool Has(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& All() const { return fields_; }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// Gives the next bytes of a body: writes at most `size` bytes to `out`, returns how many, 0 at the
/// end. An error ends the request with that error.
using BodyReader = std::function<base::Result<size_t>(char* out, size_t size)>;
/// Opens a body at its start; called once more when a request is sent again.
using OpenBody = std::function<base::Result<BodyReader>()>;

struct Request {
  std::string method = "GET";
  /// http://host[:port]/path?query, https://…, or http+unix://<percent-encoded socket path>/path.
  std::string url;
  /// Host, Content-Length, Transfer-Encoding and Connection are set by the transport; given here
  /// they are an error.
  Headers headers;
  std::string body;
  OpenBody stream;  ///< instead of `body`: streamed, never held in memory
  std::optional<uint64_t>
      stream_length;  ///< length of `stream` where known, otherwise it is sent chunked
  size_t max_response_bytes = 8 << 20;  ///< a longer answer body is kTooLarge
};

struct Response {
  int status = 0;  ///< 200 to 999; 1xx answers are not shown
  Headers headers;
  std::string body;
  bool repeated =
      false;  ///< the request was sent a second time (see Send); the first one may have arrived too
};

/// Sends requests. Redirects are not followed, proxy variables (HTTP_PROXY, …) are not read,
/// cookies are not kept.
///
/// Thread safety: Send may be called at the same time from any thread.
class Transport {
 public:
  virtual ~Transport() = default;

  /// Sends one request and reads the whole answer; any status is a success here. Blocks until then,
  /// until `deadline` (which bounds name lookup, connecting, TLS, sending and receiving together)
  /// or until `stop` is requested (ends within 50 ms).
  ///
  /// A request that failed on a reused connection before any byte of an answer came is sent again
  /// on a new one, if its method is idempotent (GET, HEAD, PUT, DELETE, OPTIONS, TRACE) or none of
  /// its bytes had been sent. Nothing else is repeated.
  ///
  /// Errors (the message names host:port and what happened):
  ///   kUnavailable        no connection, or it was lost, or the peer does not speak HTTP; the
  ///   request may have arrived; kFailedPrecondition the server's certificate is not accepted, or
  ///   ca_file cannot be read: retrying does not help; kDeadlineExceeded   the deadline passed;
  ///   kCancelled: stop was requested; kTooLarge           the answer's head or body is above its
  ///   limit; kInvalidArgument    the URL or a header is malformed; whatever the body reader
  ///   returned.
  virtual base::Result<Response> Send(const Request& request, base::Deadline deadline,
                                      std::stop_token stop = {}) = 0;
};

}  // namespace sless::transport
