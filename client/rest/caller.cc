#include "client/rest/caller.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <condition_variable>
#include <mutex>

#include "client/api/error_body.h"
#include "client/base/backoff.h"

namespace sless::rest {
namespace {

using base::Code;
using std::chrono::milliseconds;

constexpr milliseconds kLongestBackoff{5000};
constexpr milliseconds kLongestRetryAfter{10'000};

/// The seconds form of Retry-After; the date form is not worth a parser here.
milliseconds RetryAfter(const transport::Response& response) {
  const auto text = response.headers.Get("Retry-After");
  int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0)
    return milliseconds(0);
  return std::min<milliseconds>(std::chrono::seconds(std::min<int64_t>(seconds, 60)),
                                kLongestRetryAfter);
}

}  // namespace

Caller::Caller(ClientOptions options, std::unique_ptr<transport::Transport> owned,
               transport::Transport* transport)
    : options_(std::move(options)), owned_(std::move(owned)), transport_(transport) {
  while (options_.endpoint.ends_with('/')) options_.endpoint.pop_back();
}

base::Result<ApiAnswer> Caller::Send(const ApiRequest& api, const Call& call,
                                     bool* repeated) const {
  transport::Request request;
  request.method = api.method;
  request.url = options_.endpoint + api.path;
  request.headers = api.headers;
  request.body = api.body;
  request.stream = api.stream;
  request.max_response_bytes = 64 << 20;
  request.headers.Set("User-Agent", options_.user_agent);
  request.headers.Set("Accept", "application/json");
  if (!options_.token.empty())
    request.headers.Set("Authorization", "Bearer " + options_.token.Reveal());

  bool maybe_twice = false;
  base::Backoff backoff(options_.first_backoff, kLongestBackoff);
  for (int attempt = 0;; ++attempt) {
    auto result = Once(request, api, call);
    maybe_twice = maybe_twice || attempt > 0 || result.repeated;
    if (repeated != nullptr) *repeated = maybe_twice;
    if (result.answer) {
      return std::move(result.answer);
    }
    const bool again = result.may_retry && !api.once && attempt < options_.max_retries &&
                       Sleep(std::max(backoff.Next(), result.retry_after), call);
    if (again) continue;
    auto error = std::move(result.answer).error();
    if (attempt > 0) error.message += fmt::format(" (after {} attempts)", attempt + 1);
    return base::Err(std::move(error));
  }
}

Caller::Attempt Caller::Once(const transport::Request& request, const ApiRequest& api,
                             const Call& call) const {
  auto deadline = base::Deadline::After(clock_, options_.request_timeout + api.extra_time);
  deadline.at = std::min(deadline.at, call.deadline.at);
  const auto response = transport_->Send(request, deadline, call.stop);
  const auto where =
      fmt::format(" ({} {})", request.method, request.url.substr(0, request.url.find('?')));
  if (!response) {
    auto error = response.error();
    error.message += where;
    const bool lost = error.code == Code::kUnavailable;
    if (lost || (error.code == Code::kDeadlineExceeded && call.deadline.at != deadline.at)) {
      error.message += "; " + options_.endpoint_hint;
    }
    return {base::Err(std::move(error)), lost};
  }
  if (response->status >= 200 && response->status < 300)
    return {ApiAnswer{response->body}, false, response->repeated};
  auto error = api::ErrorFromBody(response->status, response->body);
  if (response->status >= 300 && response->status < 400) {
    error = {Code::kFailedPrecondition,
             fmt::format("the endpoint redirects to \"{}\", name that one instead",
                         response->headers.Get("Location")),
             "",
             "",
             {}};
  }
  error.message += where;
  if (response->status == 401) error.message += "; " + options_.token_hint;
  const bool may_retry =
      response->status == 429 || response->status == 502 || response->status == 503;
  return {base::Err(std::move(error)), may_retry, response->repeated, RetryAfter(*response)};
}

bool Caller::Sleep(milliseconds wait, const Call& call) const {
  if (wait >= call.deadline.Left(clock_)) return false;
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, call.stop, wait, [] { return false; });
  return !call.stop.stop_requested();
}

tl::unexpected<base::Error> Caller::TimeIsUp(const Call& call, std::string what) const {
  const bool stopped = call.stop.stop_requested();
  return base::Err(stopped ? Code::kCancelled : Code::kDeadlineExceeded,
                   fmt::format("{} while {}", stopped ? "stopped" : "timed out", what));
}

}  // namespace sless::rest
