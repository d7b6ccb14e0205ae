#pragma once

// What a request and an answer are, free of any library.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/base/result.h"

namespace sless::http {

/// Header fields in their order; names compare without case.
class Headers {
 public:
  using Field = std::pair<std::string, std::string>;

  /// The first value of `name`, "" if there is none.
  std::string_view Get(std::string_view name) const;
  bool Has(std::string_view name) const;
  /// How many fields have this name.
  size_t Count(std::string_view name) const;
  void Add(std::string name, std::string value) {
    fields_.emplace_back(std::move(name), std::move(value));
  }
  /// Replaces all fields of that name by one.
  void Set(std::string name, std::string value);
  void Remove(std::string_view name);

  size_t size() const { return fields_.size(); }
  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }

 private:
  std::vector<Field> fields_;
};

/// True if both are equal but for the case of ASCII letters.
bool SameNoCase(std::string_view a, std::string_view b);

struct Request {
  std::string method;  ///< as sent: "GET"
  std::string target;  ///< as sent: path and query
  std::string path;    ///< as sent, percent-encoded
  std::string query;   ///< as sent, without '?'
  bool http11 = true;
  Headers headers;
  std::string body;  ///< empty in uploads and streams
  std::map<std::string, std::string, std::less<>>
      params;         ///< {name} segments of the route, decoded
  std::string rest;   ///< routes that end in "/*": the path after the prefix, as sent; "" or "/…"
  std::string route;  ///< pattern that matched, for logs and metrics
  std::string request_id;  ///< X-Request-Id of the client where it is sane, else a new one
  std::string peer;        ///< address of the client, "unix" on a unix socket
  std::stop_token
      gone;  ///< requested once the client closed the connection or the server's grace is over

  /// The decoded value of a query parameter ('+' stays '+'); nullopt where absent. A broken escape
  /// stays as it is.
  std::optional<std::string> Query(std::string_view name) const;
  /// A whole number in [least, most] from the query. Error: kInvalidArgument naming the parameter.
  base::Result<int64_t> QueryInt(std::string_view name, int64_t fallback, int64_t least,
                                 int64_t most) const;
  std::string Param(std::string_view name) const;
  /// For bodies that are read here: nothing undoes a Content-Encoding (RFC 9110, 8.4). Error:
  /// kInvalidArgument, reason UnsupportedMediaType.
  base::Status CheckNotEncoded() const;
};

struct Response {
  int status = 200;
  Headers headers;
  std::string body;

  static Response Json(int status, std::string body);
  static Response Text(int status, std::string body,
                       std::string_view type = "text/plain; charset=utf-8");
  /// The JSON error body and status of client/api/error_body; a 503 has Retry-After, a 401
  /// WWW-Authenticate.
  static Response FromError(const base::Error& error);
};

/// Calls waiters by topic. Thread safety: all methods may be called at the same time from any
/// thread.
class WakeHub {
 public:
  WakeHub();
  ~WakeHub();
  WakeHub(const WakeHub&) = delete;
  WakeHub& operator=(const WakeHub&) = delete;

  /// Wakes all that wait for `topic`. Never blocks for long; nobody waiting is nothing.
  void Notify(const std::string& topic);
  /// Calls `wake` at each Notify until Forget(id). `wake` must not block and not call the hub.
  uint64_t Listen(const std::string& topic, std::function<void()> wake);
  void Forget(const std::string& topic, uint64_t id);
  size_t waiting() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Long poll: the answer is not there yet. The server calls `check(false)` on a worker after it
/// began to listen and after each Notify(topic), and `check(true)` at `until`; the first answer
/// ends the wait. No worker is held in between.
struct Wait {
  WakeHub* hub = nullptr;
  std::string topic;
  std::chrono::steady_clock::time_point until;
  /// Must return an answer where `last` is true.
  std::function<std::optional<Response>(bool last)> check;
};

/// What a handler hands back: an answer, an error (becomes a JSON error body) or a wait.
class Reply {
 public:
  Reply(Response response) : response_(std::move(response)) {}  // NOLINT: implicit on purpose
  Reply(const base::Error& error) : response_(Response::FromError(error)) {}  // NOLINT
  Reply(const tl::unexpected<base::Error>& e)
      : response_(Response::FromError(e.value())) {}  // NOLINT
  Reply(base::Result<Response> r)
      : response_(r ? std::move(*r) : Response::FromError(r.error())) {}  // NOLINT
  Reply(Wait wait) : wait_(std::move(wait)) {}                            // NOLINT

  Response& response() { return response_; }
  std::optional<Wait>& wait() { return wait_; }

 private:
  Response response_;
  std::optional<Wait> wait_;
};

}  // namespace sless::http
