#include "server/runner/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/api/error_body.h"
#include "client/base/json.h"
#include "server/runner/http_event.h"

namespace sless::runner {
namespace {

using base::Code;
using http::Request;
using http::Responder;
using http::Response;

constexpr size_t kTail = 30;

Response ErrorAnswer(const base::Error& error, int status) {
  Response response = Response::Json(status, api::ErrorBody(error));
  response.headers.Set("X-Sless-Error", error.reason);
  return response;
}

// As in a terminal: what was printed, then the traceback. The end of the traceback tells most; the
// log has what is left of the 30 lines.
std::vector<std::string> Tail(const Outcome& outcome) {
  std::vector<std::string> lines = outcome.trace;
  if (lines.size() > 24) lines.erase(lines.begin() + 1, lines.end() - 23);
  const size_t room = kTail - std::min(kTail, lines.size());
  const size_t from = outcome.log_tail.size() - std::min(room, outcome.log_tail.size());
  lines.insert(lines.begin(), outcome.log_tail.begin() + static_cast<std::ptrdiff_t>(from),
               outcome.log_tail.end());
  return lines;
}

Response EventAnswer(const Outcome& outcome) {
  if (outcome.error) {
    base::Error error = *outcome.error;
    error.source.log_tail = Tail(outcome);
    return ErrorAnswer(error, api::HttpStatus(error));
  }
  const nlohmann::ordered_json body{{"resultJson", outcome.result_json},
                                    {"logTail", outcome.log_tail},
                                    {"durationMs", outcome.duration_ms}};
  return Response::Json(200, body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

// The caller of a public URL is a stranger: what the code said and where stays in its log.
Response PublicError(const base::Error& error, const std::string& request_id) {
  base::Error shown{error.code, error.message, "", error.reason, {}};
  if (error.reason == "HandlerError") {
    shown.message =
        fmt::format("the function failed; its log has the reason under request id {}", request_id);
  } else if (error.reason == "ReplicaDied") {
    shown.message = fmt::format(
        "the function's process ended in the middle of the call; its log has the reason (request "
        "id {})",
        request_id);
  }
  // To a stranger what failed is a backend, whoever wrote it.
  return ErrorAnswer(shown, error.reason == "HandlerError" ? 502 : api::HttpStatus(error));
}

Response HttpOutcome(const Outcome& outcome, const std::string& request_id) {
  if (outcome.error) return PublicError(*outcome.error, request_id);
  auto answer = HttpAnswer(outcome.result_json);
  // What is wrong with the form of an answer names no secret, and its author is the one who looks
  // at it first.
  if (!answer) return ErrorAnswer(answer.error(), 502);
  return std::move(*answer);
}

base::Status CheckSize(const Request& request) {
  if (request.body.size() <= kMaxEvent) return base::Ok();
  return base::Err(
      Code::kTooLarge,
      fmt::format("the body has {} bytes, at most {} are allowed", request.body.size(), kMaxEvent),
      "", "TooLarge");
}

std::string Source(const Request& request, std::string_view fallback) {
  const auto source = request.headers.Get("X-Sless-Source");
  return std::string(source.empty() ? fallback : source);
}

void OnEvent(Engine& engine, Request request, Responder respond) {
  if (const auto fits = CheckSize(request); !fits) return respond(ErrorAnswer(fits.error(), 413));
  if (const auto valid = base::CheckJson(request.body); !valid) {
    base::Error error = valid.error();
    error.message = "the event: " + error.message;
    error.reason = "BadRequest";
    return respond(ErrorAnswer(error, 400));
  }
  engine.Submit({request.request_id, Source(request, "invoke"), std::move(request.body),
                 request.gone, [respond](Outcome outcome) { respond(EventAnswer(outcome)); },
                 request.headers.Has("X-Sless-Await-End")});
}

void OnHttp(Engine& engine, const base::Clock& clock, Request request, Responder respond) {
  if (const auto fits = CheckSize(request); !fits) return respond(ErrorAnswer(fits.error(), 413));
  // A handler learns the length of the body, however it came here.
  if (request.headers.Has("Transfer-Encoding")) {
    request.headers.Remove("Transfer-Encoding");
    request.headers.Set("Content-Length", std::to_string(request.body.size()));
  }
  std::string event = HttpEvent(request, clock.Now());
  engine.Submit(
      {request.request_id, Source(request, "http"), std::move(event), request.gone,
       [respond, id = request.request_id](Outcome outcome) { respond(HttpOutcome(outcome, id)); }});
}

Response Healthz(const Engine& engine) {
  const Health health = engine.health();
  switch (health.phase) {
    case Phase::kReady:
      return Response::Json(200, R"({"status":"ready"})");
    case Phase::kStarting:
      return Response::Json(503, R"({"status":"starting"})");
    case Phase::kStartFailed:
      return ErrorAnswer(*health.failure, 500);
    case Phase::kDraining:
    case Phase::kEnded:
      break;
  }
  return Response::Json(503, R"({"status":"draining"})");
}

}  // namespace

http::Router MakeRouter(Engine& engine, const base::Clock& clock) {
  http::Router router;
  // Our own check answers what is a little above the limit with the documented reason.
  http::RouteOptions options;
  options.max_body = kMaxEvent + 1024 * 1024;
  options.quiet = true;
  router.AddDeferred(
      "GET", "/healthz", [&engine](Request, Responder respond) { respond(Healthz(engine)); },
      options);
  auto event_options = options;
  event_options.half_close = true;
  router.AddDeferred(
      "POST", "/event",
      [&engine](Request request, Responder respond) {
        OnEvent(engine, std::move(request), std::move(respond));
      },
      event_options);
  const auto on_http = [&engine, &clock](Request request, Responder respond) {
    OnHttp(engine, clock, std::move(request), std::move(respond));
  };
  router.AddDeferred("*", "/http", on_http, options);
  router.AddDeferred("*", "/http/*", on_http, options);
  return router;
}

}  // namespace sless::runner
