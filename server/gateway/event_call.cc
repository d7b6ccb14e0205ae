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

base::Result<EventResult> GatewayImpl::ReadEvent(const base::Result<RawEvent>& raw) {
  if (!raw) return base::Err(raw.error());
  if (raw->status != 200) return base::Err(FromRunner(raw->status, raw->reason, raw->body));
  auto result = ParseAnswer(raw->body);
  if (result) result->revision = raw->revision;
  return result;
}

http::Task<base::Result<GatewayImpl::RawEvent>> GatewayImpl::CallEvent(
    boost::asio::any_io_executor executor, EventCall call, std::stop_token gone,
    std::optional<std::stop_token> give_up) {
  const auto began = std::chrono::steady_clock::now();
  const auto function = co_await FindOrWait(executor, call.ns, call.function);
  if (!function) co_return base::Err(NoSuchFunction(call.ns, call.function));
  http::Headers headers;
  headers.Add("Content-Type", "application/json");
  headers.Add("X-Request-Id", call.request_id.empty() ? base::RandomHex(16) : call.request_id);
  headers.Add("X-Sless-Source", call.source);
  if (give_up) headers.Add("X-Sless-Await-End", "1");
  const Outgoing out{"POST",          "/event", std::move(headers),
                     call.event_json, nullptr,  std::move(give_up)};
  auto attempt = co_await Send(executor, function, out, gone);
  const auto fail = [&](base::Error error) {
    Count(*function, call.source,
          error.reason.empty() ? base::CodeName(error.code) : std::string_view(error.reason),
          began);
    return base::Err(std::move(error));
  };
  if (!attempt) co_return fail(attempt.error());
  RawEvent raw{attempt->head.status, std::string(attempt->head.headers.Get("X-Sless-Error")), "",
               attempt->revision};
  for (;;) {
    const auto piece = co_await attempt->call->ReadBody();
    if (!piece) co_return fail(Explain(piece.error(), *function, attempt->timeout_sec));
    if (piece->empty()) break;
    raw.body.append(*piece);
    if (raw.body.size() > kMaxAnswer) {
      co_return fail(
          {Code::kTooLarge, "the function's result is above 32 MiB", "", "TooLarge", {}});
    }
  }
  Count(*function, call.source, raw.status == 200 ? "ok" : raw.reason, began);
  co_return raw;
}

base::Result<EventResult> GatewayImpl::Invoke(const EventCall& call, std::stop_token stop) {
  struct Box {
    std::mutex mutex;
    std::condition_variable ready;
    std::optional<base::Result<RawEvent>> raw;
  };
  const auto box = std::make_shared<Box>();
  const auto executor = http::NextExecutor(deps_.io);
  std::stop_source unwanted;
  const auto end = [&] { unwanted.request_stop(); };
  std::stop_callback on_cancel(call.cancel, end), on_stop(stop, end);
  boost::asio::co_spawn(executor, CallEvent(executor, call, unwanted.get_token(), stop),
                        [box](std::exception_ptr error, base::Result<RawEvent> raw) {
                          std::lock_guard lock(box->mutex);
                          box->raw = error ? base::Result<RawEvent>(base::Err(
                                                 Code::kInternal, "the call ended in an exception"))
                                           : std::move(raw);
                          box->ready.notify_all();
                        });
  // Bounded by the cold start's limit, twice timeout_sec and `stop` inside.
  std::unique_lock lock(box->mutex);
  box->ready.wait(lock, [&] { return box->raw.has_value(); });
  auto result = ReadEvent(*box->raw);
  if (!result && unwanted.stop_requested())
    return base::Err(Code::kCancelled, "the call was cancelled: " + result.error().message);
  return result;
}

http::Task<void> GatewayImpl::ServeInvoke(http::Exchange& exchange) {
  const auto& request = exchange.request();
  const auto executor = co_await boost::asio::this_coro::executor;
  std::optional<base::Error> error;
  const auto allowed = co_await CheckToken(exchange);
  const auto plain = request.CheckNotEncoded();
  if (!allowed) {
    error = allowed.error();
  } else if (!plain) {
    error = plain.error();
  }
  EventCall call{request.Param("namespace"), request.Param("name"), "", request.request_id,
                 "invoke"};
  std::optional<CallBody> body;
  if (!error) {
    const auto function = co_await FindOrWait(executor, call.ns, call.function);
    if (function) {
      body.emplace(exchange, options_, buffered_, function);
      const auto read = co_await body->Read();
      if (!read) error = read.error();
      call.event_json = body->Take();
    } else {
      error = NoSuchFunction(call.ns, call.function);
    }
  }
  if (call.event_json.empty()) call.event_json = "{}";
  if (!error) {
    std::function<void()> parse = [&] {
      if (const auto json = base::CheckJson(call.event_json); !json)
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
    const auto raw = co_await CallEvent(executor, std::move(call), request.gone, std::nullopt);
    std::function<void()> read = [&] { result = ReadEvent(raw); };
    co_await exchange.OnWorker(read);
  }
  body.reset();
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
