#include <fmt/format.h>

#include "client/api/error_body.h"
#include "server/gateway/forwarded.h"
#include "server/gateway/gateway_impl.h"
#include "server/gateway/trigger_match.h"
#include "server/http/head_writer.h"
#include "server/http/path.h"

namespace sless::gateway {
namespace {

using base::Code;

// Of what a client sends, what a function may see. The rest is ours to set, or speaks of the
// client's connection.
http::Headers ForFunction(const http::Request& request, bool with_token, Origin origin) {
  http::Headers out;
  const auto connection = Joined(request.headers, "Connection");
  for (const auto& [name, value] : request.headers) {
    const bool ours = http::SameNoCase(name, "X-Request-Id") ||
                      http::SameNoCase(std::string_view(name).substr(0, 8), "X-Sless-") ||
                      http::SameNoCase(std::string_view(name).substr(0, 12), "X-Forwarded-") ||
                      http::SameNoCase(name, "Expect");
    // A token of ours opens the whole API: it is not for functions.
    const bool token = with_token && http::SameNoCase(name, "Authorization");
    // Connection does not take away what a request is not whole without.
    const bool dropped = !http::SameNoCase(name, "Host") && http::IsHopByHop(name, connection);
    if (ours || token || dropped) continue;
    out.Add(name, value);
  }
  out.Set("X-Request-Id", request.request_id);
  out.Set("X-Sless-Source", "http");
  out.Set("X-Sless-Protocol", request.http11 ? "HTTP/1.1" : "HTTP/1.0");
  out.Set("X-Sless-Prefix", request.path.substr(0, request.path.size() - request.rest.size()));
  out.Set("X-Forwarded-For", std::move(origin.address));
  out.Set("X-Forwarded-Proto", std::move(origin.scheme));
  out.Set("X-Forwarded-Host", std::move(origin.host));
  return out;
}

// An answer of ours. `route`: of the function; null where there is none.
http::Response ErrorResponse(base::Error error, const FunctionRoute* route) {
  error.source = {};  // logs and file names are for those with a token
  auto response = http::Response::FromError(error);
  if (route != nullptr && route->revision)
    response.headers.Set("X-Sless-Revision", std::to_string(route->revision->revision));
  return response;
}

std::string_view Outcome(int status) {
  return status < 400 ? "ok" : status < 500 ? "client_error" : "error";
}

}  // namespace

http::Task<base::Status> GatewayImpl::Admit(http::Exchange& exchange, const FunctionRoute& route,
                                            http::Response& refusal, bool& with_token) {
  const auto& request = exchange.request();
  const auto match = MatchTrigger(route, request.method,
                                  http::CanonicalPath(request.rest.empty() ? "/" : request.rest));
  if (match.route == nullptr) {
    refusal = ErrorResponse(match.error, &route);
    if (!match.allow.empty()) refusal.headers.Add("Allow", match.allow);
    co_return base::Err(match.error);
  }
  if (match.route->spec.auth != "token") co_return base::Ok();
  with_token = true;
  auto status = co_await CheckToken(exchange);
  if (!status) refusal = ErrorResponse(status.error(), &route);
  co_return status;
}

http::Task<base::Status> GatewayImpl::CheckToken(http::Exchange& exchange) {
  base::Status status;
  std::function<void()> check = [&] {
    const auto caller = deps_.auth.Check(exchange.request().headers.Get("Authorization"));
    if (!caller) status = base::Err(caller.error());
  };
  co_await exchange.OnWorker(check);
  co_return status;
}

// Without a token the details are left out, see Activator::Acquire. A trigger that wants none may
// be sent one all the same.
http::Task<void> GatewayImpl::LeaveOutDetails(http::Exchange& exchange, base::Error& error) {
  const auto detail = error.message.find(": ");
  if (detail == std::string::npos) co_return;
  const auto known = co_await CheckToken(exchange);
  if (!known) error.message.resize(detail);
}

http::Task<bool> GatewayImpl::Relay(http::Exchange& exchange, Attempt attempt) {
  http::Response head;
  head.status = attempt.head.status;
  const auto connection = attempt.head.headers.Get("Connection");
  for (const auto& [name, value] : attempt.head.headers) {
    if (http::IsHopByHop(name, connection) || http::SameNoCase(name, "X-Sless-Error")) continue;
    head.headers.Add(name, value);
  }
  head.headers.Set("X-Sless-Revision", std::to_string(attempt.revision));
  auto status = co_await exchange.StartResponse(std::move(head), attempt.head.length);
  while (status) {
    const auto piece = co_await attempt.call->ReadBody();
    if (!piece) {
      exchange.Abort();  // the client must see that it is cut
      co_return false;
    }
    if (piece->empty()) break;
    status = co_await exchange.WriteBody(*piece);
  }
  if (status) status = co_await exchange.FinishBody();
  co_return status.has_value();
}

http::Task<void> GatewayImpl::ServeFunction(http::Exchange& exchange) {
  const auto began = std::chrono::steady_clock::now();
  const auto& request = exchange.request();
  const auto executor = co_await boost::asio::this_coro::executor;
  const auto function =
      co_await FindOrWait(executor, request.Param("namespace"), request.Param("name"));
  std::shared_ptr<const FunctionRoute> route;
  if (function) route = Activator::Route(*function);
  if (!route) {
    auto answer =
        ErrorResponse(NoSuchFunction(request.Param("namespace"), request.Param("name")), nullptr);
    co_await exchange.Respond(std::move(answer));
    co_return;
  }
  http::Response refusal;
  bool with_token = false;
  const auto admitted = co_await Admit(exchange, *route, refusal, with_token);
  if (!admitted) {
    Count(*function, "http", "refused", began);
    co_await exchange.Respond(std::move(refusal));
    co_return;
  }
  CallBody body(exchange, options_, buffered_, function);
  auto read = co_await body.Read(options_.first_bytes);
  if (read && !body.whole() && !body.KeepsUp(options_.upload_patience)) {
    read = co_await body.Read();
  }
  base::Result<Attempt> attempt = tl::unexpected<base::Error>(base::Error{});
  if (read) {
    auto origin = OriginOf(request, options_.trusted_proxies, options_.external_scheme);
    auto headers = ForFunction(request, with_token, std::move(origin));
    // That there is a body, if an empty one; its length is the upstream call's to write.
    if (request.headers.Has("Transfer-Encoding")) headers.Set("Content-Length", "0");
    const Outgoing out{request.method,
                       "/http" + (request.rest.empty() ? "/" : request.rest) +
                           (request.query.empty() ? "" : "?" + request.query),
                       std::move(headers),
                       body.bytes(),
                       &body,
                       {}};
    attempt = co_await Send(executor, function, out, request.gone);
  } else {
    attempt = base::Err(read.error());
  }
  body.Release();  // not kept while a slow client reads its answer
  if (!attempt) {
    Count(*function, "http",
          attempt.error().reason.empty() ? base::CodeName(attempt.error().code)
                                         : attempt.error().reason,
          began);
    // What is wrong with the body its sender may read.
    auto error = attempt.error();
    if (!body.failed() && !with_token) co_await LeaveOutDetails(exchange, error);
    auto answer = ErrorResponse(std::move(error), route.get());
    co_await exchange.Respond(std::move(answer));
    co_return;
  }
  const auto outcome = Outcome(attempt->head.status);
  const bool whole = co_await Relay(exchange, std::move(*attempt));
  Count(*function, "http", whole ? outcome : "cut", began);
}

}  // namespace sless::gateway
