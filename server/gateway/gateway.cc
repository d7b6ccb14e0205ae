#include "server/gateway/gateway.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "server/gateway/gateway_impl.h"

namespace sless::gateway {

std::unique_ptr<Gateway> MakeGateway(Gateway::Deps deps, GatewayOptions options) {
  return std::make_unique<GatewayImpl>(deps, std::move(options));
}

GatewayImpl::GatewayImpl(Deps deps, GatewayOptions options)
    : deps_(deps),
      options_(std::move(options)),
      activator_({deps.io, upstream_, deps.runtime, deps.metrics, deps.clock, deps.log, options_}),
      calls_(deps.metrics.Counters("sless_invocations_total",
                                   "Calls of functions by where they came from and how they ended",
                                   {"function", "source", "outcome"})),
      durations_(deps.metrics.Histograms("sless_invocation_duration_seconds",
                                         "From the arrival of a call to its answer",
                                         {"function"})) {}

GatewayImpl::~GatewayImpl() { Stop(); }

void GatewayImpl::RegisterRoutes(http::Router& router) {
  const http::RouteOptions options{.max_body = options_.max_body};
  http::AddStream(
      router, "*", "/fn/{namespace}/{name}/*",
      [this](http::Exchange& exchange) { return ServeFunction(exchange); }, options);
  http::AddStream(
      router, "POST", "/v1/namespaces/{namespace}/functions/{name}/invoke",
      [this](http::Exchange& exchange) { return ServeInvoke(exchange); }, options);
}

void GatewayImpl::Count(FunctionState& function, std::string_view source, std::string_view outcome,
                        std::chrono::steady_clock::time_point began) {
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  function.Measure([&] {
    calls_.With({function.Id(), std::string(source), std::string(outcome)}).Add();
    durations_.With({function.Id()}).Observe(took.count());
  });
}

base::Error GatewayImpl::NoSuchFunction(std::string_view ns, std::string_view name) {
  return {base::Code::kNotFound,
          fmt::format("there is no function {}/{}", ns, name),
          "",
          "NoSuchFunction",
          {}};
}

// While the server restores what it served before, a function that is not there yet is waited for.
http::Task<std::shared_ptr<FunctionState>> GatewayImpl::FindOrWait(
    boost::asio::any_io_executor executor, std::string ns, std::string name) {
  for (int i = 0;; ++i) {
    auto function = activator_.Find(ns, name);
    std::shared_ptr<const FunctionRoute> route;
    if (function) route = Activator::Route(*function);
    const bool serves = route && (route->revision || route->switched_off);
    if (serves || !activator_.restoring() || i >= 200) co_return route ? function : nullptr;
    boost::asio::steady_timer pause(executor, std::chrono::milliseconds(50));
    co_await pause.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

}  // namespace sless::gateway
