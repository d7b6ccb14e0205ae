// PUT and PATCH: what a body may say, conditions, and the write.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "client/api/fields.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/domain/validate.h"
#include "server/handlers/object_handlers.h"

namespace sless::handlers {
namespace {

using base::Code;
using http::Response;
using nlohmann::json;
constexpr const char* kVersionField = "/metadata/resourceVersion";
constexpr int kTries = 20;  // a write meets writes of status by the reconciler

base::Result<json> ReadObjectBody(const http::Request& request) {
  RETURN_IF_ERROR(request.CheckNotEncoded());
  ASSIGN_OR_RETURN(auto body, base::ParseJson(request.body));
  if (!body.is_object())
    return base::Err(Code::kInvalidArgument,
                     fmt::format("want a JSON object, got {}", body.type_name()));
  return body;
}

base::Status CheckMembers(const json& body, const std::vector<std::string>& known,
                          const std::string& path) {
  for (const auto& [name, value] : body.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const auto nearest = base::Nearest(name, known);
    return base::Err(Code::kInvalidArgument,
                     fmt::format("unknown field \"{}\"; known: {}{}", base::Truncate(name, 60),
                                 base::Join(known, ", "),
                                 nearest.empty() ? "" : "; did you mean \"" + nearest + "\"?"),
                     path + "/" + api::fields_internal::Token(name));
  }
  return base::Ok();
}

// By a header or by the body: which, the reason tells.
tl::unexpected<base::Error> Stale(const store::StoredObject& there, const std::string& version,
                                  std::string field, std::string reason) {
  return base::Err(Code::kAborted,
                   fmt::format("{} was changed by somebody else: its resourceVersion is {}, not "
                               "{}; read it again and repeat the change",
                               there.key.ToString(), there.metadata.resource_version,
                               base::Truncate(version, 40)),
                   std::move(field), std::move(reason));
}

base::Status SameOrEmpty(const std::string& in_body, const std::string& in_path,
                         const std::string& field) {
  if (in_body.empty() || in_body == in_path) return base::Ok();
  return base::Err(
      Code::kInvalidArgument,
      fmt::format("the body says \"{}\", the path \"{}\"", base::Truncate(in_body, 80), in_path),
      field);
}

}  // namespace

base::Result<ObjectHandlers::Wanted> ObjectHandlers::ReadWanted(const json& body,
                                                                const api::ObjectKey& key) const {
  RETURN_IF_ERROR(CheckMembers(body, {"kind", "metadata", "spec", "status"}, ""));
  if (body.contains("kind") && body["kind"] != json(key.kind)) {
    return base::Err(Code::kInvalidArgument, fmt::format("kind must be \"{}\"", key.kind), "/kind");
  }
  Wanted wanted;
  if (const auto it = body.find("metadata"); it != body.end() && !it->is_null()) {
    ASSIGN_OR_RETURN(auto metadata,
                     api::FromJson<api::Metadata>(*it, api::Unknown::kError, "/metadata"));
    RETURN_IF_ERROR(SameOrEmpty(metadata.ns, key.ns, "/metadata/namespace"));
    RETURN_IF_ERROR(SameOrEmpty(metadata.name, key.name, "/metadata/name"));
    metadata.ns = key.ns;
    metadata.name = key.name;
    RETURN_IF_ERROR(domain::ValidateMetadata(metadata));
    wanted.version = std::move(metadata.resource_version);
    if (it->contains("annotations")) wanted.annotations = std::move(metadata.annotations);
  }
  const auto spec = body.find("spec");
  if (spec == body.end()) return base::Err(Code::kInvalidArgument, "spec is missing", "/spec");
  ASSIGN_OR_RETURN(wanted.spec, kind_.read_spec(*spec));
  return wanted;
}

base::Result<ObjectHandlers::Condition> ObjectHandlers::ReadCondition(
    const http::Request& request) {
  Condition condition;
  // One that is there and empty is no condition that somebody meant to leave out.
  if (request.headers.Has(kIfNoneMatch.name)) {
    if (request.headers.Get(kIfNoneMatch.name) != "*")
      return base::Err(Code::kInvalidArgument, "If-None-Match must be *");
    condition.create_only = true;
  }
  if (request.headers.Has(kIfMatch.name)) {
    const auto text = request.headers.Get(kIfMatch.name);
    condition.must_exist = true;
    if (text == "*") return condition;
    if (text.size() < 3 || text.front() != '"' || text.back() != '"') {
      return base::Err(Code::kInvalidArgument,
                       "If-Match must be one resourceVersion in double quotes");
    }
    condition.version = std::string(text.substr(1, text.size() - 2));
  }
  return condition;
}

base::Status ObjectHandlers::CheckCondition(const store::StoredObject& there,
                                            const Condition& condition) {
  if (condition.create_only) {
    return base::Err(Code::kAlreadyExists, there.key.ToString() + " exists", "", "AlreadyExists");
  }
  if (condition.version && *condition.version != there.metadata.resource_version) {
    return Stale(there, *condition.version, "", "PreconditionFailed");
  }
  return base::Ok();
}

base::Status ObjectHandlers::CheckCode(const api::ObjectKey& key, const std::string& spec) const {
  RETURN_IF_ERROR(kind_.check_inline_code(spec));
  const auto hash = kind_.needs_code(spec);
  if (hash.empty()) return base::Ok();
  ASSIGN_OR_RETURN(const bool there, deps_.artifacts.Has(key.ns, hash));
  if (there) return base::Ok();
  return base::Err(
      Code::kFailedPrecondition,
      fmt::format(
          "no code was uploaded under {0}; PUT the zip to /v1/namespaces/{1}/code/{0} first", hash,
          key.ns),
      "/spec/source/hash", "SourceMissing");
}

base::Result<Response> ObjectHandlers::Create(const api::ObjectKey& key,
                                              const Wanted& wanted) const {
  RETURN_IF_ERROR(CheckCode(key, wanted.spec));
  store::StoredObject object{key, {}, wanted.spec, kind_.new_status()};
  object.metadata.ns = key.ns;
  object.metadata.name = key.name;
  if (wanted.annotations) object.metadata.annotations = *wanted.annotations;
  ASSIGN_OR_RETURN(const auto created, deps_.store.Create(std::move(object)));
  return Answer(201, created);
}

base::Result<Response> ObjectHandlers::Replace(const store::StoredObject& there,
                                               const Wanted& wanted,
                                               const Condition& condition) const {
  RETURN_IF_ERROR(CheckCondition(there, condition));
  if (!wanted.version.empty() && wanted.version != there.metadata.resource_version)
    return Stale(there, wanted.version, kVersionField, "Conflict");
  if (!there.metadata.deletion_requested_at.empty()) {
    return base::Err(Code::kAborted,
                     there.key.ToString() + " is being deleted; try again when it is gone", "",
                     "BeingDeleted");
  }
  auto next = there;
  // An equal spec keeps its text, so that a newer server's way to write it is no change.
  if (!kind_.same_spec(there.spec_json, wanted.spec)) {
    RETURN_IF_ERROR(kind_.check_update(there, wanted.spec));
    RETURN_IF_ERROR(CheckCode(there.key, wanted.spec));
    next.spec_json = wanted.spec;
  }
  if (wanted.annotations) next.metadata.annotations = *wanted.annotations;
  ASSIGN_OR_RETURN(const auto updated, deps_.store.Update(std::move(next)));
  return Answer(200, updated);
}

http::Reply ObjectHandlers::Put(http::Request& request) const {
  ASSIGN_OR_RETURN(const auto key, Key(request));
  ASSIGN_OR_RETURN(const auto condition, ReadCondition(request));
  ASSIGN_OR_RETURN(const auto body, ReadObjectBody(request));
  ASSIGN_OR_RETURN(const auto wanted, ReadWanted(body, key));
  for (int i = 0;; ++i) {
    const auto there = deps_.store.Get(key);
    if (!there && there.error().code != Code::kNotFound) return there.error();
    if (!there && condition.must_exist) {
      return base::Err(Code::kAborted,
                       key.ToString() + " does not exist, and If-Match wants one that does", "",
                       "PreconditionFailed");
    }
    if (!there && !wanted.version.empty()) {
      return base::Err(Code::kAborted,
                       key.ToString() +
                           " does not exist any more, so it has no such resourceVersion; leave "
                           "metadata.resourceVersion out to create it",
                       kVersionField, "Conflict");
    }
    auto answer = there ? Replace(*there, wanted, condition) : Create(key, wanted);
    const auto code = answer ? Code::kInternal : answer.error().code;
    // A race, not a condition of the caller: look again.
    const bool lost_race =
        !answer && answer.error().reason.empty() &&
        (code == Code::kAborted || code == Code::kNotFound || code == Code::kAlreadyExists);
    if (lost_race && i < kTries) continue;
    return answer;
  }
}

http::Reply ObjectHandlers::Patch(http::Request& request) const {
  const auto type = base::Trim(
      request.headers.Get("Content-Type").substr(0, request.headers.Get("Content-Type").find(';')));
  if (!http::SameNoCase(type, "application/merge-patch+json") &&
      !http::SameNoCase(type, "application/json")) {
    return base::Err(Code::kInvalidArgument,
                     "PATCH wants Content-Type: application/merge-patch+json", "",
                     "UnsupportedMediaType");
  }
  ASSIGN_OR_RETURN(const auto key, Key(request));
  ASSIGN_OR_RETURN(const auto condition, ReadCondition(request));
  ASSIGN_OR_RETURN(const auto patch, ReadObjectBody(request));
  RETURN_IF_ERROR(CheckMembers(patch, {"metadata", "spec"}, ""));
  if (const auto it = patch.find("metadata"); it != patch.end()) {
    if (!it->is_object()) return base::Err(Code::kInvalidArgument, "want an object", "/metadata");
    RETURN_IF_ERROR(CheckMembers(*it, {"annotations"}, "/metadata"));
  }
  for (int i = 0;; ++i) {
    ASSIGN_OR_RETURN(const auto there, deps_.store.Get(key));
    ASSIGN_OR_RETURN(auto body, kind_.write(there));
    body.erase("status");
    body.merge_patch(patch);
    if (!body["metadata"].contains("annotations")) body["metadata"]["annotations"] = json::object();
    ASSIGN_OR_RETURN(const auto wanted, ReadWanted(body, key));
    auto answer = Replace(there, wanted, condition);
    const bool lost_race =
        !answer && answer.error().reason.empty() && answer.error().code == Code::kAborted;
    if (lost_race && i < kTries) continue;
    return answer;
  }
}

}  // namespace sless::handlers
