#include "server/domain/validate.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/api/rules.h"
#include "client/base/strings.h"
#include "client/cron/schedule.h"
#include "server/domain/checks.h"
#include "server/domain/field_bounds.h"

namespace sless::domain {
namespace {

using base::Code;
using base::Err;
using base::Status;

constexpr size_t kMaxAnnotations = 64;
constexpr size_t kMaxAnnotationKey = 128;
constexpr size_t kMaxAnnotationValue = 4096;

Status AtField(Status status, const std::string& path) {
  if (!status) status.error().field = path;
  return status;
}

Status CheckMethods(const std::vector<std::string>& methods) {
  const auto& served = api::HttpMethods();
  for (size_t i = 0; i < methods.size(); ++i) {
    const std::string path = fmt::format("/spec/http/methods/{}", i);
    if (std::find(methods.begin(), methods.begin() + static_cast<std::ptrdiff_t>(i), methods[i]) !=
        methods.begin() + static_cast<std::ptrdiff_t>(i)) {
      return Invalid(fmt::format("\"{}\" is listed twice", base::Truncate(methods[i], 20)), path);
    }
    if (std::find(served.begin(), served.end(), methods[i]) != served.end()) continue;
    std::string upper = methods[i];
    for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    const std::string near = base::Nearest(upper, served);
    return Invalid(fmt::format("want one of {}, got \"{}\"{}", base::Join(served, ", "),
                               base::Truncate(methods[i], 20),
                               near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)),
                   path);
  }
  return base::Ok();
}

Status CheckHttpPath(const std::string& path) {
  const auto problem = api::HttpPathProblem(path);
  if (problem.empty()) return base::Ok();
  return Invalid(fmt::format("\"{}\" {}; a path is like \"/\" or \"/v1/orders\"",
                             base::Truncate(path, 80), problem),
                 "/spec/http/path");
}

Status CheckCron(const api::CronSpec& cron) {
  RETURN_IF_ERROR(AtField(cron::ValidateSchedule(cron.schedule), "/spec/cron/schedule"));
  // Loaded, not only checked: a server without time zones could not fire it.
  if (const auto zone = cron::TimeZone::Load(cron.timezone); !zone) {
    return Err(zone.error().code, zone.error().message, "/spec/cron/timezone");
  }
  return cron.payload.empty() ? base::Ok() : CheckEvent(cron.payload, "/spec/cron/payload");
}

}  // namespace

Status ValidateMetadata(const api::Metadata& metadata) {
  RETURN_IF_ERROR(CheckLabel("a namespace", metadata.ns, "/metadata/namespace"));
  RETURN_IF_ERROR(CheckLabel("a name", metadata.name, "/metadata/name"));
  const std::string path = "/metadata/annotations";
  if (metadata.annotations.size() > kMaxAnnotations) {
    return Invalid(
        fmt::format("at most {} annotations, got {}", kMaxAnnotations, metadata.annotations.size()),
        path);
  }
  for (const auto& [key, value] : metadata.annotations) {
    if (key.empty() || key.size() > kMaxAnnotationKey || !base::IsUtf8(key)) {
      return Invalid(
          fmt::format("the key of an annotation is a text of 1 to {} bytes", kMaxAnnotationKey),
          path);
    }
    if (!base::IsUtf8(value)) return Invalid("the value is not valid UTF-8", MemberPath(path, key));
    RETURN_IF_ERROR(
        CheckText("the value of an annotation", value, kMaxAnnotationValue, MemberPath(path, key)));
  }
  return base::Ok();
}

Status ValidateTrigger(const api::TriggerSpec& spec) {
  RETURN_IF_ERROR(CheckBounds(spec, "/spec"));
  RETURN_IF_ERROR(CheckLabel("the name of a function", spec.function, "/spec/function"));
  const bool is_http = spec.type == "http";
  if (is_http && !spec.http)
    return Invalid("a trigger of type \"http\" needs its settings under http", "/spec/http");
  if (!is_http && !spec.cron)
    return Invalid("a trigger of type \"cron\" needs its settings under cron", "/spec/cron");
  if (is_http && spec.cron)
    return Invalid("a trigger of type \"http\" has no cron settings", "/spec/cron");
  if (!is_http && spec.http)
    return Invalid("a trigger of type \"cron\" has no http settings", "/spec/http");
  if (!is_http) return CheckCron(*spec.cron);
  RETURN_IF_ERROR(CheckMethods(spec.http->methods));
  return CheckHttpPath(spec.http->path);
}

Status ValidateJob(const api::JobSpec& spec) {
  RETURN_IF_ERROR(CheckBounds(spec, "/spec"));
  RETURN_IF_ERROR(CheckLabel("the name of a function", spec.function, "/spec/function"));
  return CheckEvent(spec.event_json, "/spec/eventJson");
}

Status ValidateTriggerUpdate(const api::TriggerSpec& before, const api::TriggerSpec& after) {
  if (before.type == after.type) return base::Ok();
  return Err(
      Code::kFailedPrecondition,
      fmt::format(
          "a trigger keeps its type, which is \"{}\"; delete it and make a new one of type \"{}\"",
          before.type, base::Truncate(after.type, 20)),
      "/spec/type", "TypeChanged");
}

Status ValidateJobUpdate(const api::JobStatus& status, const api::JobSpec& after) {
  if (after.run_id == 0 || after.run_id >= status.last_run_id) return base::Ok();
  return Err(Code::kFailedPrecondition,
             fmt::format("runId was lowered to {}, but the last run was {}; raise it above {} to "
                         "run again, or set 0 to run nothing",
                         after.run_id, status.last_run_id, status.last_run_id),
             "/spec/runId", "RunIdLowered");
}

}  // namespace sless::domain
