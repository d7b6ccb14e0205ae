// Logs, namespaces, info, health, metrics.

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/handlers/kinds.h"
#include "server/handlers/routes.h"
#include "server/store/namespaces.h"

namespace sless::handlers {
namespace {

using base::Code;
using http::Response;
using nlohmann::json;

http::Reply Logs(const Deps& deps, const http::Request& request) {
  const auto ns = request.Param("namespace");
  const auto name = request.Param("name");
  for (const auto& part : {ns, name}) {
    if (const auto problem = base::DnsLabelProblem(part); !problem.empty())
      return base::Err(Code::kInvalidArgument, problem);
  }
  invocations::LogQuery query;
  ASSIGN_OR_RETURN(const auto limit, request.QueryInt("limit", 100, 1, 10'000));
  ASSIGN_OR_RETURN(query.revision, request.QueryInt("revision", 0, 0, INT64_MAX));
  query.limit = static_cast<size_t>(limit);
  query.stream = request.Query("stream").value_or("");
  query.request_id = request.Query("requestId").value_or("");
  if (!query.stream.empty() && query.stream != "stdout" && query.stream != "stderr" &&
      query.stream != "system" && query.stream != "build") {
    return base::Err(Code::kInvalidArgument,
                     "query parameter \"stream\" must be stdout, stderr, system or build");
  }
  ASSIGN_OR_RETURN(const auto records, deps.logs.Read(ns, name, query));
  if (records.empty()) RETURN_IF_ERROR(deps.store.Get({"Function", ns, name}));
  json body{{"items", json::array()}};
  for (const auto& record : records) {
    body["items"].push_back({{"time", base::FormatTime(record.time)},
                             {"revision", record.revision},
                             {"replica", record.replica},
                             {"stream", record.stream},
                             {"requestId", record.request_id},
                             {"line", record.line}});
  }
  return Response::Json(200, base::DumpJson(body));
}

// A namespace is there as long as something is in it.
http::Reply Namespaces(const Deps& deps, const http::Request& request) {
  ASSIGN_OR_RETURN(const auto limit, request.QueryInt("limit", 100, 1, 1000));
  const auto after = request.Query("continue").value_or("");
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
    json item;
    item["name"] = name;
    body["items"].push_back(std::move(item));
  }
  return Response::Json(200, base::DumpJson(body));
}

http::Reply Info(const Deps& deps) {
  return Response::Json(200, base::DumpJson({{"version", SLESS_VERSION},
                                             {"externalUrl", deps.external_url},
                                             {"runtimes", deps.runtimes}}));
}

Response Ready(const Deps& deps) {
  const auto status = deps.readiness ? deps.readiness() : base::Ok();
  if (status) return Response::Json(200, R"({"status":"ready"})");
  return Response::FromError(status.error());
}

}  // namespace

void AddLogRoutes(Routes& routes) {
  routes.Add("GET", "/v1/namespaces/{namespace}/functions/{name}/logs",
             {"Newest log lines of a function and its builds, oldest first",
              {200},
              "LogList",
              "",
              {{"limit", "at most so many lines", "", 10000, 1},
               {"stream", "of one stream", "stdout|stderr|system|build"},
               {"requestId", "of one call"},
               {"revision", "of one revision", "", INT64_MAX}}},
             [&deps = routes.deps()](http::Request& request) { return Logs(deps, request); });
}

void AddServerRoutes(Routes& routes) {
  const auto& deps = routes.deps();
  routes.Add("GET", "/v1/namespaces",
             {"Namespaces in use, ordered by name",
              {200},
              "NamespaceList",
              "",
              {{"limit", "at most so many", "", 1000, 1}, {"continue", "from the page before"}}},
             [&deps](http::Request& request) { return Namespaces(deps, request); });
  routes.Add("GET", "/v1/info",
             {"Version, public address and runtimes of this server", {200}, "Info"},
             [&deps](http::Request&) { return Info(deps); });
  routes.AddProbe("/healthz", {"The server answers", {200}, "Health"},
                  [] { return Response::Json(200, R"({"status":"ok"})"); });
  routes.AddProbe("/readyz",
                  {"The server has restored what it served; 503 before", {200}, "Health"},
                  [&deps] { return Ready(deps); });
  routes.AddPublic(
      "GET", "/metrics", {"Metrics for Prometheus; needs no token and holds no secret", {200}, ""},
      [&deps](http::Request&) {
        return Response::Text(200, deps.metrics.Text(), "text/plain; version=0.0.4; charset=utf-8");
      });
}

}  // namespace sless::handlers
