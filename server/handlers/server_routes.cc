// Logs, namespaces, info, health, metrics.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "client/api/fields.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/handlers/answers.h"
#include "server/handlers/kinds.h"
#include "server/handlers/routes.h"
#include "server/store/namespaces.h"

namespace sless::handlers {
namespace {

using http::Response;
using nlohmann::json;

constexpr QueryDoc kLines{"limit", "at most so many lines", "", 10'000, 1, 100};
constexpr QueryDoc kStream{"stream", "of one stream", LogLine::kStreams};
constexpr QueryDoc kRequestId{"requestId", "of one call"};
constexpr QueryDoc kRevision{"revision", "of one revision; 0 for all", "", INT64_MAX, 0, 0};

http::Reply Logs(const Deps& deps, const http::Request& request) {
  const auto ns = request.Param("namespace");
  const auto name = request.Param("name");
  for (const auto& part : {ns, name}) {
    if (const auto problem = base::DnsLabelProblem(part); !problem.empty())
      return base::Err(base::Code::kInvalidArgument, problem);
  }
  invocations::LogQuery query;
  ASSIGN_OR_RETURN(const auto limit, Number(request, kLines));
  ASSIGN_OR_RETURN(query.revision, Number(request, kRevision));
  ASSIGN_OR_RETURN(query.stream, Word(request, kStream));
  query.limit = static_cast<size_t>(limit);
  query.request_id = request.Query(kRequestId.name).value_or("");
  ASSIGN_OR_RETURN(const auto records, deps.logs.Read(ns, name, query));
  if (records.empty()) RETURN_IF_ERROR(deps.store.Get({"Function", ns, name}));
  json body{{"items", json::array()}};
  for (const auto& record : records) {
    body["items"].push_back(
        api::ToJson(LogLine{base::FormatTime(record.time), record.revision, record.replica,
                            record.stream, record.request_id, record.line}));
  }
  return Response::Json(200, base::DumpJson(body));
}

// A namespace is there as long as something is in it.
http::Reply Namespaces(const Deps& deps, const http::Request& request) {
  ASSIGN_OR_RETURN(const auto limit, Number(request, kLimit));
  const auto after = request.Query(kContinue.name).value_or("");
  std::set<std::string> names;
  for (const auto& kind : Kinds()) {
    ASSIGN_OR_RETURN(const auto some, store::Namespaces(deps.store, std::string(kind.name), after,
                                                        static_cast<size_t>(limit) + 1));
    names.insert(some.begin(), some.end());
  }
  json body{{"items", json::array()}};
  for (const auto& name : names) {
    if (body["items"].size() == static_cast<size_t>(limit)) {
      body["continue"] = body["items"].back()["name"];
      break;
    }
    body["items"].push_back(api::ToJson(Namespace{name}));
  }
  return Response::Json(200, base::DumpJson(body));
}

Response Say(std::string status) {
  return Response::Json(200, api::ToJsonText(Health{std::move(status)}));
}

Response Ready(const Deps& deps) {
  const auto status = deps.readiness ? deps.readiness() : base::Ok();
  if (status) return Say("ready");
  return Response::FromError(status.error());
}

}  // namespace

void AddLogRoutes(Routes& routes) {
  routes.Add("GET", "/v1/namespaces/{namespace}/functions/{name}/logs",
             {.summary = "Newest log lines of a function and its builds, oldest first",
              .schema = "LogList",
              .does = {Does::kReadStore, Does::kFindByName, Does::kUseFiles},
              .query = {kLines, kStream, kRequestId, kRevision}},
             [&deps = routes.deps()](http::Request& request) { return Logs(deps, request); });
}

void AddServerRoutes(Routes& routes) {
  const auto& deps = routes.deps();
  routes.Add("GET", "/v1/namespaces",
             {.summary = "Namespaces in use, ordered by name",
              .schema = "NamespaceList",
              .does = {Does::kReadStore},
              .query = {kLimit, kContinue}},
             [&deps](http::Request& request) { return Namespaces(deps, request); });
  routes.Add("GET", "/v1/info",
             {.summary = "Version, public address and runtimes of this server", .schema = "Info"},
             [&deps](http::Request&) {
               return Response::Json(
                   200, api::ToJsonText(Info{SLESS_VERSION, deps.external_url, deps.runtimes}));
             });
  routes.AddProbe("/healthz", {.summary = "The server answers", .schema = "Health"},
                  [] { return Say("ok"); });
  routes.AddProbe(
      "/readyz",
      {.summary = "The server has restored what it served; 503 before", .schema = "Health"},
      [&deps] { return Ready(deps); });
  routes.AddPublic(
      "GET", "/metrics", {.summary = "Metrics for Prometheus; needs no token and holds no secret"},
      [&deps](http::Request&) {
        return Response::Text(200, deps.metrics.Text(), "text/plain; version=0.0.4; charset=utf-8");
      });
}

}  // namespace sless::handlers
