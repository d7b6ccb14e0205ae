#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <condition_variable>
#include <nlohmann/json.hpp>

#include "client/api/error_body.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/gateway/gateway_impl.h"

namespace sless::gateway {
namespace {

using base::Code;
constexpr size_t kMaxAnswer = 32 * 1024 * 1024;

// The codes of invoker.h for the reasons of docs/runner.md.
base::Error FromRunner(int status, std::string_view reason, std::string_view body) {
  auto error = api::ErrorFromBody(status, body);
  if (error.reason.empty()) error.reason = std::string(reason);
  if (error.reason == "HandlerError") error.code = Code::kFailedPrecondition;
  if (error.reason == "Timeout") error.code = Code::kDeadlineExceeded;
  if (error.reason == "ReplicaDied") error.code = Code::kInternal;
  if (error.reason == "BadRequest") error.code = Code::kInvalidArgument;
  if (error.reason == "TooLarge") error.code = Code::kTooLarge;
  return error;
}

base::Result<EventResult> ParseAnswer(std::string_view body) {
  ASSIGN_OR_RETURN(const auto json, base::ParseJson(body));
  EventResult result;
  const auto value = json.find("resultJson");
  if (!json.is_object() || value == json.end()) {
    return base::Err(Code::kInternal, "the runner's answer has no resultJson");
  }
  result.result_json = value->is_string() ? value->get<std::string>() : base::DumpJson(*value);
  if (const auto tail = json.find("logTail"); tail != json.end() && tail->is_array()) {
    for (const auto& line : *tail) {
      if (line.is_string()) result.log_tail.push_back(line.get<std::string>());
    }
  }
  if (const auto took = json.find("durationMs"); took != json.end() && took->is_number()) {
    result.duration_ms = took->get<int64_t>();
  }
  return result;
}

}  // namespace

http::Task<base::Result<EventResult>> GatewayImpl::CallEvent(boost::asio::any_io_executor executor,
                                                             EventCall call, std::stop_token gone) {
  const auto began = std::chrono::steady_clock::now();
  const auto function = co_await FindOrWait(executor, call.ns, call.function);
  if (!function) {
    co_return base::Err(Code::kNotFound,
                        fmt::format("there is no function {}/{}", call.ns, call.function), "",
                        "NoSuchFunction");
  }
  http::Headers headers;
  headers.Add("Content-Type", "application/json");
  headers.Add("X-Request-Id", call.request_id.empty() ? base::RandomHex(16) : call.request_id);
  headers.Add("X-Sless-Source", call.source);
  const Outgoing out{"POST", "/event", std::move(headers), call.event_json};
  auto attempt = co_await Send(executor, function, out, gone);
  const auto count = [&](std::string_view outcome) {
    Count(*function, call.source, outcome, began);
  };
  if (!attempt) {
    count(attempt.error().reason.empty() ? base::CodeName(attempt.error().code)
                                         : attempt.error().reason);
    co_return base::Err(attempt.error());
  }
  std::string body;
  for (;;) {
    const auto piece = co_await attempt->call->ReadBody();
    if (!piece)
      co_return base::Err(Code::kInternal, "the process ended while it answered", "",
                          "ReplicaDied");
    if (piece->empty()) break;
    body.append(*piece);
    if (body.size() > kMaxAnswer)
      co_return base::Err(Code::kTooLarge, "the function's result is above 32 MiB", "", "TooLarge");
  }
  if (attempt->head.status != 200) {
    auto error = FromRunner(attempt->head.status, attempt->head.headers.Get("X-Sless-Error"), body);
    count(error.reason);
    co_return base::Err(std::move(error));
  }
  auto result = ParseAnswer(body);
  if (result) result->revision = attempt->revision;
  count(result ? "ok" : "error");
  co_return result;
}

base::Result<EventResult> GatewayImpl::Invoke(const EventCall& call, std::stop_token stop) {
  struct Box {
    std::mutex mutex;
    std::condition_variable ready;
    std::optional<base::Result<EventResult>> result;
  };
  const auto box = std::make_shared<Box>();
  const auto executor = http::NextExecutor(deps_.io);
  boost::asio::co_spawn(executor, CallEvent(executor, call, stop),
                        [box](std::exception_ptr error, base::Result<EventResult> result) {
                          std::lock_guard lock(box->mutex);
                          box->result =
                              error ? base::Result<EventResult>(base::Err(
                                          Code::kInternal, "the call ended in an exception"))
                                    : std::move(result);
                          box->ready.notify_all();
                        });
  // Bounded by the cold start's limit, timeout_sec and `stop` inside.
  std::unique_lock lock(box->mutex);
  box->ready.wait(lock, [&] { return box->result.has_value(); });
  return std::move(*box->result);
}

http::Task<void> GatewayImpl::ServeInvoke(http::Exchange& exchange) {
  const auto& request = exchange.request();
  const auto executor = co_await boost::asio::this_coro::executor;
  std::optional<base::Error> error;
  std::function<void()> check = [&] {
    const auto caller = deps_.auth.Check(request.headers.Get("Authorization"));
    if (!caller) error = caller.error();
  };
  co_await exchange.OnWorker(check);
  EventCall call{request.Param("namespace"), request.Param("name"), "", request.request_id,
                 "invoke"};
  if (!error) {
    const auto read = co_await ReadBody(exchange, call.event_json);
    if (!read) error = read.error();
  }
  const auto held = call.event_json.size();
  if (call.event_json.empty()) call.event_json = "{}";
  if (!error) {
    std::function<void()> parse = [&] {
      const auto json = base::ParseJson(call.event_json);
      if (!json)
        error = base::Error{Code::kInvalidArgument,
                            "the event must be JSON: " + json.error().message,
                            "",
                            "BadRequest",
                            {}};
    };
    co_await exchange.OnWorker(parse);
  }
  base::Result<EventResult> result = tl::unexpected<base::Error>(base::Error{});
  if (error) {
    result = base::Err(*error);
  } else {
    result = co_await CallEvent(executor, std::move(call), request.gone);
  }
  buffered_ -= held;
  http::Response response;
  if (result) {
    response = http::Response::Json(200, std::move(result->result_json));
    response.headers.Set("X-Sless-Revision", std::to_string(result->revision));
  } else {
    response = http::Response::FromError(result.error());
  }
  co_await exchange.Respond(std::move(response));
}

}  // namespace sless::gateway
