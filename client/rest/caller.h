#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "client/rest/sless_client.h"

namespace sless::rest {

/// One API request, without the endpoint.
struct ApiRequest {
  std::string method = "GET";
  std::string path;  ///< from api/routes.h, with the query
  transport::Headers headers;
  std::string body;
  transport::OpenBody stream;
  std::chrono::milliseconds extra_time{0};  ///< on top of request_timeout: a long poll, an upload
  bool once = false;  ///< no retries: what it asks for depends on the time that is left
};

/// What came back, and how.
struct ApiAnswer {
  std::string body;
};

/// Sends requests with token, retries and error texts. Thread-safe.
class Caller {
 public:
  Caller(ClientOptions options, std::unique_ptr<transport::Transport> owned,
         transport::Transport* transport);

  /// A 2xx answer, or an error. `repeated` (may be null) is set in both cases: an earlier attempt
  /// may have arrived too.
  base::Result<ApiAnswer> Send(const ApiRequest& request, const Call& call,
                               bool* repeated = nullptr) const;
  /// Sleeps; false if the deadline or the stop comes first.
  bool Sleep(std::chrono::milliseconds wait, const Call& call) const;
  /// The error of a call whose time is up, by `call`'s stop or deadline.
  tl::unexpected<base::Error> TimeIsUp(const Call& call, std::string what) const;

  const base::Clock& clock() const { return clock_; }
  const ClientOptions& options() const { return options_; }

 private:
  struct Attempt {
    base::Result<ApiAnswer> answer;
    bool may_retry = false;
    bool repeated = false;  // by the transport
    std::chrono::milliseconds retry_after{0};
  };
  Attempt Once(const transport::Request& request, const ApiRequest& api, const Call& call) const;

  ClientOptions options_;
  std::unique_ptr<transport::Transport> owned_;
  transport::Transport* transport_;
  base::SystemClock clock_;
};

}  // namespace sless::rest
