#include "server/handlers/object_handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/api/function.h"
#include "client/base/json.h"
#include "client/base/strings.h"

namespace sless::handlers {
namespace {

using base::Code;
using http::Response;

std::chrono::steady_clock::time_point After(int64_t seconds) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
}

}  // namespace

base::Result<api::ObjectKey> ObjectHandlers::Key(const http::Request& request) const {
  api::ObjectKey key{std::string(kind_.name), request.Param("namespace"), request.Param("name")};
  if (const auto problem = base::DnsLabelProblem(key.ns); !problem.empty()) {
    return base::Err(Code::kInvalidArgument, "namespace: " + problem, "/metadata/namespace");
  }
  if (const auto problem = base::DnsLabelProblem(key.name); !problem.empty()) {
    return base::Err(Code::kInvalidArgument, "name: " + problem, "/metadata/name");
  }
  return key;
}

base::Result<Response> ObjectHandlers::Answer(int status, const store::StoredObject& object) const {
  ASSIGN_OR_RETURN(const auto json, kind_.write(object));
  auto response = Response::Json(status, base::DumpJson(json));
  response.headers.Add("ETag", "\"" + object.metadata.resource_version + "\"");
  return response;
}

http::Reply ObjectHandlers::List(http::Request& request) const {
  store::ListQuery query{std::string(kind_.name), request.Param("namespace"), "", 100,
                         request.Query(kContinue.name).value_or("")};
  if (const auto problem = base::DnsLabelProblem(query.ns); !problem.empty()) {
    return base::Err(Code::kInvalidArgument, "namespace: " + problem, "/metadata/namespace");
  }
  ASSIGN_OR_RETURN(const auto limit, Number(request, kLimit));
  query.limit = static_cast<size_t>(limit);
  ASSIGN_OR_RETURN(const auto page, deps_.store.List(query));
  nlohmann::json body{{"items", nlohmann::json::array()}};
  for (const auto& object : page.items) {
    ASSIGN_OR_RETURN(auto json, kind_.write(object));
    body["items"].push_back(std::move(json));
  }
  if (!page.continue_after.empty()) body["continue"] = page.continue_after;
  return Response::Json(200, base::DumpJson(body));
}

http::Reply ObjectHandlers::Get(http::Request& request) const {
  ASSIGN_OR_RETURN(const auto key, Key(request));
  ASSIGN_OR_RETURN(const auto timeout, Number(request, kWaitTimeout));
  ASSIGN_OR_RETURN(const auto wait, Word(request, kReadWait));
  ASSIGN_OR_RETURN(const auto asked, Number(request, kGeneration, -1));
  ASSIGN_OR_RETURN(const auto object, deps_.store.Get(key));
  if (wait.empty()) return Answer(200, object);
  if (wait == "gone") return WaitGone(key, After(timeout), false);
  const auto generation = asked < 0 ? object.metadata.generation : asked;
  return WaitReady(key, generation, After(timeout));
}

bool ObjectHandlers::IsFinal(const store::StoredObject& object, int64_t generation) const {
  const auto status = base::ParseJson(object.status_json);
  if (!status || !status->is_object()) return false;
  const auto observed = status->value("observedGeneration", int64_t{0});
  const auto phase = status->value("phase", std::string());
  // A function that failed may have been told to try once more.
  if (status->contains("observedRetry")) {
    const auto retry = object.metadata.annotations.find(std::string(api::kRetryAnnotation));
    if (status->value("observedRetry", std::string()) !=
        (retry == object.metadata.annotations.end() ? "" : retry->second))
      return false;
  }
  return observed >= generation && std::find(kind_.final_phases.begin(), kind_.final_phases.end(),
                                             phase) != kind_.final_phases.end();
}

http::Reply ObjectHandlers::WaitReady(const api::ObjectKey& key, int64_t generation,
                                      std::chrono::steady_clock::time_point until) const {
  return http::Wait{&deps_.hub, key.ToString(), until,
                    [this, key, generation](bool last) -> std::optional<Response> {
                      const auto object = deps_.store.Get(key);
                      if (!object) return Response::FromError(object.error());
                      if (!last && !IsFinal(*object, generation)) return std::nullopt;
                      auto answer = Answer(200, *object);
                      return answer ? std::move(*answer) : Response::FromError(answer.error());
                    }};
}

// After a DELETE 204 says gone; to a GET the object is not found any more.
http::Reply ObjectHandlers::WaitGone(const api::ObjectKey& key,
                                     std::chrono::steady_clock::time_point until,
                                     bool deleting) const {
  return http::Wait{&deps_.hub, key.ToString(), until,
                    [this, key, deleting](bool last) -> std::optional<Response> {
                      const auto object = deps_.store.Get(key);
                      if (!object && object.error().code == Code::kNotFound && deleting)
                        return Response{204, {}, ""};
                      if (!object) return Response::FromError(object.error());
                      if (!last) return std::nullopt;
                      auto answer = Answer(deleting ? 202 : 200, *object);
                      return answer ? std::move(*answer) : Response::FromError(answer.error());
                    }};
}

http::Reply ObjectHandlers::Delete(http::Request& request) const {
  ASSIGN_OR_RETURN(const auto key, Key(request));
  ASSIGN_OR_RETURN(const auto timeout, Number(request, kWaitTimeout));
  ASSIGN_OR_RETURN(const auto wait, Word(request, kDeleteWait));
  ASSIGN_OR_RETURN(const auto condition, ReadCondition(request));
  for (int i = 0;; ++i) {
    ASSIGN_OR_RETURN(auto object, deps_.store.Get(key));
    RETURN_IF_ERROR(CheckCondition(object, condition));
    if (object.metadata.deletion_requested_at.empty()) {
      object.metadata.deletion_requested_at = base::FormatTime(deps_.clock.Now());
      auto updated = deps_.store.Update(std::move(object));
      if (!updated && updated.error().code == Code::kAborted && i < 20)
        continue;  // its status was written meanwhile
      if (!updated) return updated.error();
      object = std::move(*updated);
    }
    if (!wait.empty()) return WaitGone(key, After(timeout), true);
    return Answer(202, object);
  }
}

}  // namespace sless::handlers
