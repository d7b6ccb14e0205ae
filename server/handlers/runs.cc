#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "client/api/fields.h"
#include "client/api/job.h"
#include "client/api/trigger.h"
#include "client/base/strings.h"
#include "server/domain/job_lifecycle.h"
#include "server/handlers/answers.h"
#include "server/handlers/routes.h"
#include "server/store/rules.h"
#include "server/store/typed.h"

namespace sless::handlers {
namespace {

using base::Code;
using http::Response;

constexpr QueryDoc kBefore{"continue", "from the page before", "", INT64_MAX};

base::Status CheckNames(const http::Request& request) {
  for (const char* part : {"namespace", "name"}) {
    if (const auto problem = base::DnsLabelProblem(request.Param(part)); !problem.empty()) {
      return base::Err(Code::kInvalidArgument, fmt::format("{}: {}", part, problem),
                       fmt::format("/metadata/{}", part));
    }
  }
  return base::Ok();
}

Response RunAnswer(const api::Run& run) {
  auto json = api::ToJson(run);
  json["kind"] = api::kKindRun;
  return Response::Json(200, base::DumpJson(json));
}

using Runs = std::map<int64_t, std::string, std::greater<>>;  // run id → name, newest first

// Of a job or of a cron trigger: names of both begin with the owner's. A run may have a result of a
// MiB, so none is kept here.
base::Result<Runs> RunsOf(const Deps& deps, const std::string& ns, std::string_view owner_kind,
                          const std::string& owner) {
  Runs runs;
  store::ListQuery query{std::string(api::kKindRun), ns, owner + ".", 1000, ""};
  do {
    ASSIGN_OR_RETURN(auto page, deps.store.List(query));
    for (const auto& stored : page.items) {
      ASSIGN_OR_RETURN(const auto run, store::FromStored<api::Run>(stored));
      if (run.spec.owner_kind == owner_kind && run.spec.owner == owner)
        runs.emplace(run.spec.run_id, stored.key.name);
    }
    query.continue_after = std::move(page.continue_after);
  } while (!query.continue_after.empty());
  return runs;
}

http::Reply List(const Deps& deps, const http::Request& request, std::string_view owner_kind) {
  RETURN_IF_ERROR(CheckNames(request));
  ASSIGN_OR_RETURN(const auto limit, Number(request, kLimit));
  ASSIGN_OR_RETURN(const auto before, Number(request, kBefore, INT64_MAX));
  const auto ns = request.Param("namespace");
  const auto owner = request.Param("name");
  ASSIGN_OR_RETURN(const auto runs, RunsOf(deps, ns, owner_kind, owner));
  if (runs.empty()) RETURN_IF_ERROR(deps.store.Get({std::string(owner_kind), ns, owner}));
  nlohmann::json body{{"items", nlohmann::json::array()}};
  size_t bytes = 0;
  int64_t last = 0;
  auto it = request.Query(kBefore.name) ? runs.upper_bound(before) : runs.begin();
  for (; it != runs.end(); ++it) {
    if (body["items"].size() == static_cast<size_t>(limit) || bytes >= store::kMaxPageBytes) {
      body["continue"] = std::to_string(last);
      break;
    }
    const auto stored = deps.store.Get({std::string(api::kKindRun), ns, it->second});
    if (!stored && stored.error().code == Code::kNotFound) continue;  // removed just now
    if (!stored) return stored.error();
    ASSIGN_OR_RETURN(const auto run, store::FromStored<api::Run>(*stored));
    auto json = api::ToJson(run);
    json["kind"] = api::kKindRun;
    body["items"].push_back(std::move(json));
    bytes += store::SizeOf(*stored);
    last = it->first;
  }
  return Response::Json(200, base::DumpJson(body));
}

// Idempotent by the attempt's number: asking twice for attempt n allows n attempts, not more.
http::Reply RetryRun(const Deps& deps, const http::Request& request) {
  RETURN_IF_ERROR(CheckNames(request));
  RETURN_IF_ERROR(request.CheckNotEncoded());
  ASSIGN_OR_RETURN(const auto retry, api::FromJsonText<Retry>(request.body, api::Unknown::kError));
  if (retry.run_id < 1)
    return base::Err(Code::kInvalidArgument, "runId must be at least 1", "/runId");
  if (retry.attempt < 1)
    return base::Err(Code::kInvalidArgument, "attempt must be at least 1", "/attempt");
  const auto name = domain::RunName(request.Param("name"), retry.run_id);
  // The attempt is made with the job as it is now: a wrong event may be what made the last one
  // fail.
  ASSIGN_OR_RETURN(const auto job, store::GetTyped<api::Job>(deps.store, request.Param("namespace"),
                                                             request.Param("name")));
  const auto run = store::Mutate<api::Run>(
      deps.store, request.Param("namespace"), name, [&](api::Run& r) -> base::Status {
        if (retry.attempt <= std::max(r.status.attempt, r.spec.max_attempts)) return base::Ok();
        if (retry.run_id != job.spec.run_id) {
          return base::Err(Code::kFailedPrecondition,
                           fmt::format("the job's runId is {}: only the run of that number gets "
                                       "another attempt, not run {}",
                                       job.spec.run_id, retry.run_id),
                           "/runId", "NoSuchAttempt");
        }
        if (r.status.phase == "Failed" && retry.attempt == r.status.attempt + 1) {
          r.spec.max_attempts = retry.attempt;
          r.spec.event_json = job.spec.event_json;
          r.spec.function = job.spec.function;
          return base::Ok();
        }
        return base::Err(Code::kFailedPrecondition,
                         fmt::format("run {} is {} after {} attempts: only a failed run gets "
                                     "another attempt, and the next one is number {}",
                                     name, r.status.phase, r.status.attempt, r.status.attempt + 1),
                         "/attempt", "NoSuchAttempt");
      });
  if (!run) return run.error();
  return RunAnswer(*run);
}

}  // namespace

void AddRunRoutes(Routes& routes) {
  const auto path = "/v1/namespaces/{namespace}/jobs/{name}/runs";
  const auto list = [](std::string summary) {
    return RouteDoc{.summary = std::move(summary),
                    .schema = "RunList",
                    .does = {Does::kReadStore, Does::kFindByName},
                    .query = {kLimit, kBefore}};
  };
  routes.Add("GET", path, list("Runs of a job, newest first"),
             [&deps = routes.deps()](http::Request& request) {
               return List(deps, request, api::kKindJob);
             });
  routes.Add("GET", "/v1/namespaces/{namespace}/triggers/{name}/runs",
             list("Runs of a cron trigger, newest first"),
             [&deps = routes.deps()](http::Request& request) {
               return List(deps, request, api::kKindTrigger);
             });
  routes.Add("POST", path,
             {.summary = "One more attempt of a failed run; the same attempt twice is one",
              .schema = "Run",
              .does = {Does::kReadStore, Does::kFindByName, Does::kWrite, Does::kCheckBody},
              .body = BodyDoc{"Retry", {"application/json"}, kAnyType}},
             [&deps = routes.deps()](http::Request& request) { return RetryRun(deps, request); });
}

}  // namespace sless::handlers
