#include "client/rest/sless_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/api/fields.h"
#include "client/api/routes.h"
#include "client/base/digest.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "client/rest/caller.h"
#include "client/rest/kind.h"
#include "client/transport/beast_transport.h"
#include "client/transport/url.h"

namespace sless::rest {
namespace {

using base::Code;
using base::Result;
using nlohmann::json;

constexpr std::string_view kCreating = api::kCreatingAnnotation;
constexpr int kMaxPages = 1000;
constexpr int kMaxTakeOvers = 5;
constexpr std::chrono::minutes kUploadTime{10};

tl::unexpected<base::Error> BadAnswer(const ApiRequest& request, const base::Error& error) {
  return base::Err(
      Code::kInternal,
      fmt::format(
          "the answer to {} {} is not what this client knows, is the server older or newer? {}",
          request.method, request.path, base::ToString(error)));
}

template <class T>
Result<T> Read(const ApiRequest& request, const Result<ApiAnswer>& answer) {
  if (!answer) return base::Err(answer.error());
  auto object = api::FromJsonText<T>(answer->body, api::Unknown::kIgnore);
  if (!object) return BadAnswer(request, object.error());
  return object;
}

template <class T>
Result<std::vector<T>> ReadPages(Caller& caller, const std::string& path, const Call& call) {
  std::vector<T> objects;
  std::string token;
  for (int page = 0; page < kMaxPages; ++page) {
    const ApiRequest request{
        .path = path + (token.empty() ? "" : "?continue=" + base::PercentEncode(token))};
    ASSIGN_OR_RETURN(const auto answer, caller.Send(request, call));
    const auto body = base::ParseJson(answer.body);
    if (!body) return BadAnswer(request, body.error());
    if (!body->is_object() || !body->contains("items") || !(*body)["items"].is_array()) {
      return BadAnswer(request, {Code::kInternal, "want a member \"items\"", "", "", {}});
    }
    for (const auto& item : (*body)["items"]) {
      auto object = api::FromJson<T>(item, api::Unknown::kIgnore);
      if (!object) return BadAnswer(request, object.error());
      objects.push_back(std::move(*object));
    }
    const auto next = body->find("continue");
    token = next != body->end() && next->is_string() ? next->template get<std::string>() : "";
    if (token.empty()) return objects;
  }
  return base::Err(Code::kTooLarge, fmt::format("the list has more than {} pages", kMaxPages));
}

template <class T>
std::string PutBody(const T& object) {
  // Annotations also where there are none: left out, they would stay as they are.
  json metadata{{"namespace", object.metadata.ns},
                {"name", object.metadata.name},
                {"annotations", object.metadata.annotations}};
  return base::DumpJson(
      json{{"metadata", std::move(metadata)}, {"spec", api::ToJson(object.spec)}});
}

std::string AnnotationPatch(std::string_view name, json value) {
  json patch;
  patch["metadata"]["annotations"][std::string(name)] = std::move(value);
  return base::DumpJson(patch);
}

/// A hash goes into the path as it is, so it must be one.
base::Status CheckHash(std::string_view hash) {
  if (base::IsContentHash(hash)) return base::Ok();
  return base::Err(
      Code::kInvalidArgument,
      fmt::format("want sha256:<64 hex digits>, got \"{}\"", base::Truncate(hash, 100)),
      "/spec/source/hash");
}

Result<std::unique_ptr<Caller>> MakeCaller(ClientOptions options, transport::Transport* given) {
  RETURN_IF_ERROR(transport::ParseUrl(options.endpoint));
  if (base::Contains(options.endpoint, '?')) {
    return base::Err(Code::kInvalidArgument, "the endpoint is a URL without a query");
  }
  if (options.token.Reveal().find_first_of(std::string_view("\r\n \0", 4)) != std::string::npos) {
    return base::Err(
        Code::kInvalidArgument,
        "the token has a space, a line break or a NUL, perhaps the file's last line break, which "
        "trimspace() takes away",
        "/token");
  }
  std::unique_ptr<transport::Transport> owned;
  if (given == nullptr) {
    owned = transport::MakeBeastTransport({options.ca_file});
    given = owned.get();
  }
  return std::make_unique<Caller>(std::move(options), std::move(owned), given);
}

}  // namespace

struct SlessClient::Impl {
  std::unique_ptr<Caller> caller;
};

SlessClient::SlessClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SlessClient::~SlessClient() = default;

Result<std::unique_ptr<SlessClient>> SlessClient::Make(ClientOptions options) {
  ASSIGN_OR_RETURN(auto caller, MakeCaller(std::move(options), nullptr));
  return std::unique_ptr<SlessClient>(
      new SlessClient(std::make_unique<Impl>(Impl{std::move(caller)})));
}

Result<std::unique_ptr<SlessClient>> SlessClient::Make(ClientOptions options,
                                                       transport::Transport& transport) {
  ASSIGN_OR_RETURN(auto caller, MakeCaller(std::move(options), &transport));
  return std::unique_ptr<SlessClient>(
      new SlessClient(std::make_unique<Impl>(Impl{std::move(caller)})));
}

const std::string& SlessClient::endpoint() const { return impl_->caller->options().endpoint; }

template <class T>
Result<T> SlessClient::Get(const Name& name, const Call& call) {
  const ApiRequest request{.path = PathOf<T>(name)};
  return Read<T>(request, impl_->caller->Send(request, call));
}

template <class T>
Result<std::vector<T>> SlessClient::List(const std::string& ns, const Call& call) {
  return ReadPages<T>(*impl_->caller, api::ListPath(base::PercentEncode(ns), KindOf<T>()), call);
}

template <class T>
Result<T> SlessClient::Put(const T& object, PutMode mode, const Call& call) {
  const Name name{object.metadata.ns, object.metadata.name};
  ApiRequest request{.method = "PUT", .path = PathOf<T>(name)};
  request.body = PutBody(object);
  request.headers.Set("Content-Type", "application/json");
  if (mode == PutMode::kCreateOnly) request.headers.Set("If-None-Match", "*");
  if (mode == PutMode::kReplace)
    request.headers.Set("If-Match", "\"" + object.metadata.resource_version + "\"");
  bool repeated = false;
  const auto answer = impl_->caller->Send(request, call, &repeated);
  const bool conflict = !answer && (answer.error().code == Code::kAlreadyExists ||
                                    answer.error().code == Code::kAborted);
  if (conflict && repeated) {
    // The conflict may be with our own write, whose answer was lost.
    const auto there = Get<T>(name, call);
    if (there && there->spec == object.spec &&
        there->metadata.annotations == object.metadata.annotations)
      return there;
  }
  return Read<T>(request, answer);
}

template <class T>
Result<T> SlessClient::Patch(const Name& name, const std::string& merge_patch, const Call& call) {
  ApiRequest request{.method = "PATCH", .path = PathOf<T>(name)};
  request.body = merge_patch;
  request.headers.Set("Content-Type", "application/merge-patch+json");
  return Read<T>(request, impl_->caller->Send(request, call));
}

template <class T>
base::Status SlessClient::Delete(const T& seen, const Call& call) {
  ApiRequest request{.method = "DELETE", .path = PathOf<T>({seen.metadata.ns, seen.metadata.name})};
  request.headers.Set("If-Match", "\"" + seen.metadata.resource_version + "\"");
  bool repeated = false;
  const auto answer = impl_->caller->Send(request, call, &repeated);
  if (!answer && repeated && answer.error().code == Code::kNotFound) return base::Ok();
  if (!answer) return base::Err(answer.error());
  return base::Ok();
}

template <class T>
Result<T> SlessClient::Create(T object, const Call& call) {
  const Name name{object.metadata.ns, object.metadata.name};
  const auto owner = base::RandomHex(16);
  object.metadata.annotations[std::string(kCreating)] = "true";
  object.metadata.annotations[std::string(api::kOwnerAnnotation)] = owner;
  for (int round = 0;; ++round) {
    auto created = Put(object, PutMode::kCreateOnly, call);
    const bool conflict = !created && (created.error().code == Code::kAlreadyExists ||
                                       created.error().code == Code::kAborted);
    if (!conflict || round == kMaxTakeOvers) return created;
    auto there = Get<T>(name, call);
    if (!there && there.error().code == Code::kNotFound) continue;  // deleted since
    if (!there) return there;
    if (!there->metadata.deletion_requested_at.empty()) {
      RETURN_IF_ERROR(WaitGone(*there, call));
      continue;
    }
    const auto& notes = there->metadata.annotations;
    const auto by = notes.find(std::string(api::kOwnerAnnotation));
    if (by != notes.end() && by->second == owner) return there;  // ours: the answer was lost
    if (!notes.contains(std::string(kCreating)) && there->spec != object.spec) {
      return base::Err(
          Code::kAlreadyExists,
          fmt::format("{} {}/{} already exists and differs from what this create asks for; import "
                      "it with `terraform import` or choose another name. Where it is the object "
                      "that this create replaces, leave create_before_destroy out: one name can "
                      "have one object only",
                      KindOf<T>(), name.ns, name.name));
    }
    auto replacement = object;
    replacement.metadata.resource_version = there->metadata.resource_version;
    auto taken = Put(replacement, PutMode::kReplace, call);
    const bool again =
        !taken && (taken.error().code == Code::kAborted || taken.error().code == Code::kNotFound);
    if (!again) return taken;
  }
}

template <class T>
Result<T> SlessClient::FinishCreate(const Name& name, const Call& call) {
  return Patch<T>(name, AnnotationPatch(kCreating, nullptr), call);
}

Result<api::Function> SlessClient::RetryFunction(const Name& name, const Call& call) {
  return Patch<api::Function>(name, AnnotationPatch(api::kRetryAnnotation, base::RandomHex(8)),
                              call);
}

Result<std::vector<std::string>> SlessClient::LastLines(const Name& function, int64_t revision,
                                                        const std::string& since,
                                                        const Call& call) {
  const ApiRequest request{.path = fmt::format("{}/logs?revision={}&limit=30",
                                               PathOf<api::Function>(function), revision)};
  ASSIGN_OR_RETURN(const auto answer, impl_->caller->Send(request, call));
  const auto body = base::ParseJson(answer.body);
  if (!body) return BadAnswer(request, body.error());
  std::vector<std::string> lines;
  const auto items = body->is_object() ? body->find("items") : body->end();
  if (items == body->end())
    return BadAnswer(request, {Code::kInternal, "want a member \"items\"", "", "", {}});
  for (const auto& item : *items) {
    const auto is_text = [&](const char* name) {
      return item.contains(name) && item[name].is_string();
    };
    const bool whole = item.is_object() && is_text("line") && is_text("time");
    if (whole && item["time"].get_ref<const std::string&>() >= since)
      lines.push_back(item["line"].get<std::string>());
  }
  return lines;
}

template <class T>
Result<T> SlessClient::WaitReady(const Name& name, int64_t generation, const Call& call) {
  return rest::WaitReady<T>(*impl_->caller, name, generation, call);
}

template <class T>
base::Status SlessClient::WaitGone(const T& seen, const Call& call) {
  return rest::WaitGone(*impl_->caller, seen, call);
}

Result<bool> SlessClient::HasCode(const std::string& ns, const std::string& hash,
                                  const Call& call) {
  RETURN_IF_ERROR(CheckHash(hash));
  const auto answer = impl_->caller->Send(
      {.method = "HEAD", .path = api::CodePath(base::PercentEncode(ns), hash)}, call);
  if (answer) return true;
  if (answer.error().code == Code::kNotFound) return false;
  return base::Err(answer.error());
}

base::Status SlessClient::UploadCode(const std::string& ns, const std::string& hash,
                                     const transport::OpenBody& zip, const Call& call) {
  ASSIGN_OR_RETURN(const bool there, HasCode(ns, hash, call));
  if (there) return base::Ok();
  ApiRequest request{.method = "PUT", .path = api::CodePath(base::PercentEncode(ns), hash)};
  request.headers.Set("Content-Type", "application/zip");
  request.stream = zip;
  request.extra_time = kUploadTime;  // a slow line is no failure
  RETURN_IF_ERROR(impl_->caller->Send(request, call));
  return base::Ok();
}

base::Status SlessClient::RetryRun(const Name& job, int64_t run_id, int64_t attempt,
                                   const Call& call) {
  ApiRequest request{
      .method = "POST",
      .path = api::RunsPath(base::PercentEncode(job.ns), base::PercentEncode(job.name))};
  request.body = base::DumpJson(json{{"runId", run_id}, {"attempt", attempt}});
  request.headers.Set("Content-Type", "application/json");
  RETURN_IF_ERROR(impl_->caller->Send(request, call));
  return base::Ok();
}

Result<std::vector<api::Run>> SlessClient::Runs(const Name& job, const Call& call) {
  return ReadPages<api::Run>(
      *impl_->caller, api::RunsPath(base::PercentEncode(job.ns), base::PercentEncode(job.name)),
      call);
}

Result<ServerInfo> SlessClient::Info(const Call& call) {
  const ApiRequest request{.path = std::string(api::kInfoPath)};
  ASSIGN_OR_RETURN(const auto answer, impl_->caller->Send(request, call));
  const auto body = base::ParseJson(answer.body);
  if (!body) return BadAnswer(request, body.error());
  ServerInfo info;
  const auto text = [&](const char* name) {
    return body->is_object() && body->contains(name) && (*body)[name].is_string()
               ? (*body)[name].get<std::string>()
               : std::string();
  };
  info.version = text("version");
  info.external_url = text("externalUrl");
  if (body->is_object() && body->contains("runtimes") && (*body)["runtimes"].is_array()) {
    for (const auto& runtime : (*body)["runtimes"]) {
      if (runtime.is_string()) info.runtimes.push_back(runtime.get<std::string>());
    }
  }
  if (info.external_url.empty())
    return BadAnswer(request, {Code::kInternal, "want a member \"externalUrl\"", "", "", {}});
  return info;
}

#define SLESS_INSTANTIATE(T)                                                              \
  template Result<T> SlessClient::Get<T>(const Name&, const Call&);                       \
  template Result<std::vector<T>> SlessClient::List<T>(const std::string&, const Call&);  \
  template Result<T> SlessClient::Put<T>(const T&, PutMode, const Call&);                 \
  template Result<T> SlessClient::Patch<T>(const Name&, const std::string&, const Call&); \
  template base::Status SlessClient::Delete<T>(const T&, const Call&);                    \
  template base::Status SlessClient::WaitGone<T>(const T&, const Call&);                  \
  template Result<T> SlessClient::WaitReady<T>(const Name&, int64_t, const Call&);        \
  template Result<T> SlessClient::Create<T>(T, const Call&);                              \
  template Result<T> SlessClient::FinishCreate<T>(const Name&, const Call&)

SLESS_INSTANTIATE(api::Function);
SLESS_INSTANTIATE(api::Trigger);
SLESS_INSTANTIATE(api::Job);

}  // namespace sless::rest
