#include <fmt/format.h>

#include "client/api/rules.h"
#include "client/base/digest.h"
#include "client/base/strings.h"
#include "server/domain/checks.h"
#include "server/domain/field_bounds.h"
#include "server/domain/validate.h"

namespace sless::domain {
namespace {

using base::Status;

Status CheckSource(const api::Source& source) {
  if (!base::IsContentHash(source.hash)) {
    return Invalid("want \"sha256:\" and 64 hex digits, the hash of the content tree",
                   "/spec/source/hash");
  }
  RETURN_IF_ERROR(
      CheckText("a source path", source.path, api::kMaxSourcePathBytes, "/spec/source/path"));
  if (source.type != "code") {
    if (!source.code.empty())
      return Invalid(fmt::format("code is for type \"code\"; the type is \"{}\"", source.type),
                     "/spec/source/code");
    return base::Ok();
  }
  if (source.code.empty())
    return Invalid("type \"code\" needs the text of the file", "/spec/source/code");
  return CheckText("inline code", source.code, api::kMaxInlineCodeBytes, "/spec/source/code");
}

// Names are shown, values never.
Status CheckEnvironment(const std::map<std::string, std::string>& environment) {
  const std::string path = "/spec/environment";
  if (environment.size() > api::kMaxVariables) {
    return Invalid(fmt::format("at most {} environment variables, got {}", api::kMaxVariables,
                               environment.size()),
                   path);
  }
  size_t total = 0;
  for (const auto& [name, value] : environment) {
    const std::string at = MemberPath(path, name);
    if (const auto problem = api::VariableNameProblem(name); !problem.empty()) {
      return Invalid("an environment variable " + problem, base::IsUtf8(name) ? at : path);
    }
    if (!base::IsUtf8(value)) return Invalid("the value is not valid UTF-8", at);
    if (base::Contains(value, '\0')) return Invalid("the value has a NUL character", at);
    total += name.size() + value.size() + 2;  // as the kernel counts: '=' and the final NUL
  }
  if (total > api::kMaxEnvironmentBytes) {
    return Invalid(fmt::format("all environment variables together have at most {} bytes, got {}",
                               api::kMaxEnvironmentBytes, total),
                   path);
  }
  return base::Ok();
}

Status CheckLabels(const std::map<std::string, std::string>& labels) {
  const std::string path = "/spec/labels";
  if (labels.size() > api::kMaxLabels) {
    return Invalid(fmt::format("at most {} labels, got {}", api::kMaxLabels, labels.size()), path);
  }
  for (const auto& [key, value] : labels) {
    if (const auto problem = api::LabelKeyProblem(key); !problem.empty()) {
      return Invalid("a label " + problem, base::IsUtf8(key) ? MemberPath(path, key) : path);
    }
    if (!base::IsUtf8(value)) return Invalid("the value is not valid UTF-8", MemberPath(path, key));
    RETURN_IF_ERROR(
        CheckText("the value of a label", value, api::kMaxLabelValueBytes, MemberPath(path, key)));
  }
  return base::Ok();
}

}  // namespace

Status ValidateFunction(const api::FunctionSpec& spec) {
  RETURN_IF_ERROR(CheckBounds(spec, "/spec"));
  if (const auto problem = api::EntrypointProblem(spec.entrypoint); !problem.empty()) {
    return Invalid(fmt::format("\"{}\" {}", base::Truncate(spec.entrypoint, 80), problem),
                   "/spec/entrypoint");
  }
  RETURN_IF_ERROR(CheckSource(spec.source));
  RETURN_IF_ERROR(
      CheckText("codeHash", spec.code_hash.value_or(""), api::kMaxCodeHashBytes, "/spec/codeHash"));
  RETURN_IF_ERROR(CheckEnvironment(spec.environment));
  RETURN_IF_ERROR(CheckLabels(spec.labels));
  if (!spec.replicas && spec.min_replicas > spec.max_replicas) {
    return Invalid(fmt::format("minReplicas is at most maxReplicas, which is {}; got {}",
                               spec.max_replicas, spec.min_replicas),
                   "/spec/minReplicas");
  }
  return base::Ok();
}

}  // namespace sless::domain
