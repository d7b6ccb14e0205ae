#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "client/base/result.h"
#include "server/http/message.h"

namespace sless::http {

/// An upload under way. Its methods may block within bounds: each runs on a worker thread, one
/// after the other, and no worker is held between them, however slowly the body comes. Dropped
/// without Finish where the body does not come whole.
class Upload {
 public:
  virtual ~Upload() = default;
  /// Takes the next piece of the body, at most 64 KiB. An error is the answer.
  virtual base::Status Write(std::string_view bytes) = 0;
  /// The body was whole. The answer, no Wait.
  virtual Reply Finish() = 0;
};

/// Runs on a worker thread; may block within bounds. The body is in request.body.
using Handler = std::function<Reply(Request&)>;
/// Runs on a worker thread before the body is read: an answer (no Wait), which ends the connection
/// where there is a body, or what takes the body.
using UploadHandler = std::function<std::variant<Reply, std::unique_ptr<Upload>>(Request&)>;
/// Answers once, from any thread; later calls do nothing. Copyable.
using Responder = std::function<void(Response)>;
/// Runs on an I/O thread and must not block: takes the request (body read) away and answers later
/// through the responder. Dropping every copy of the responder without an answer gives the client a
/// 500. request.gone says when nobody listens any more.
using DeferredHandler = std::function<void(Request, Responder)>;
/// Runs on a worker before the body is read (no body in `request`): an error is the answer. For
/// authentication.
using Guard = std::function<base::Status(const Request& request)>;
/// A coroutine handler; see stream.h.
class StreamHandlerBase {
 public:
  virtual ~StreamHandlerBase() = default;
};

struct RouteOptions {
  size_t max_body = 1024 * 1024;  ///< bytes; more is 413
  Guard guard;
  bool quiet = false;  ///< access lines at debug level (health probes, metrics)
  /// Deferred handlers: a client that shuts its sending side down still gets the answer.
  /// request.gone is requested then, and the handler must answer soon.
  bool half_close = false;
};

/// The list of routes: exact segments and {param} segments; a last segment "*" takes the rest of
/// the path (Request::rest). The method "*" takes all methods. Filled before the server starts,
/// immutable after; not thread-safe while filled.
///
/// Paths are matched as sent: "/%761" is not "/v1". A path with an empty segment, a dot segment, a
/// backslash, or an escape of NUL, '/',
/// '\' or of a dot segment is refused with 400 before any route is looked at; below "*" empty
/// segments and escaped '/' may stand (where they do not hide a dot segment).
class Router {
 public:
  using Target =
      std::variant<Handler, UploadHandler, DeferredHandler, std::shared_ptr<StreamHandlerBase>>;
  struct Route {
    std::string method;
    std::string pattern;
    std::vector<std::string> segments;
    bool rest = false;
    Target target;
    RouteOptions options;
  };
  struct Match {
    const Route* route = nullptr;  ///< null: `refusal` is the answer
    Response refusal;
  };

  void Add(std::string method, std::string pattern, Handler handler, RouteOptions options = {});
  void AddUpload(std::string method, std::string pattern, UploadHandler handler,
                 RouteOptions options = {});
  void AddDeferred(std::string method, std::string pattern, DeferredHandler handler,
                   RouteOptions options = {});
  void AddRoute(std::string method, std::string pattern, Target target, RouteOptions options);

  /// Finds the route and fills request.params, rest and route. 404, 405 with Allow, or 400
  /// otherwise. GET routes serve HEAD too.
  Match Find(Request& request) const;
  const std::vector<Route>& routes() const { return routes_; }

 private:
  std::vector<Route> routes_;
};

}  // namespace sless::http
