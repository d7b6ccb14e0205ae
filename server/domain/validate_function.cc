#include <fmt/format.h>

#include "client/base/strings.h"
#include "server/domain/checks.h"
#include "server/domain/field_bounds.h"
#include "server/domain/validate.h"

namespace sless::domain {
namespace {

using base::Status;

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kDigits = "0123456789";
constexpr size_t kMaxEntrypoint = 256;
constexpr size_t kMaxPath = 4096;
constexpr size_t kMaxCodeHash = 1024;
constexpr size_t kMaxVariables = 1000;
constexpr size_t kMaxLabelKey = 128;
constexpr size_t kMaxLabelValue = 256;

bool IsIn(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }

// [A-Za-z_][A-Za-z0-9_]* with `more` allowed too.
bool IsIdentifier(std::string_view text, std::string_view more = "") {
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (!IsIn(c, kLetters) && c != '_' && !IsIn(c, more) && (i == 0 || !IsIn(c, kDigits)))
      return false;
  }
  return !text.empty();
}

// "dir/file.function": the last dot divides; folders by '/'.
Status CheckEntrypoint(const std::string& entrypoint) {
  const std::string path = "/spec/entrypoint";
  const auto wrong = [&](std::string_view why) {
    return Invalid(fmt::format("want \"file.function\" without the file's ending, like "
                               "\"handler.handle\" or \"src/app.main\", got \"{}\": {}",
                               base::Truncate(entrypoint, 80), why),
                   path);
  };
  if (entrypoint.size() > kMaxEntrypoint)
    return Invalid(fmt::format("an entrypoint has at most {} bytes", kMaxEntrypoint), path);
  const size_t dot = entrypoint.rfind('.');
  if (dot == std::string::npos) return wrong("there is no '.'");
  const std::string_view function = std::string_view(entrypoint).substr(dot + 1);
  if (function == "py" || function == "js" || function == "mjs" || function == "cjs" ||
      function == "ts") {
    return wrong("this is a file with its ending; the function is missing");
  }
  if (!IsIdentifier(function, "$"))
    return wrong(
        fmt::format("\"{}\" cannot be the name of a function", base::Truncate(function, 40)));
  for (const auto& part : base::Split(std::string_view(entrypoint).substr(0, dot), '/')) {
    if (part.empty()) return wrong("the file is a relative path without empty parts");
    for (const char c : part) {
      if (!IsIn(c, kLetters) && !IsIn(c, kDigits) && c != '_' && c != '-') {
        return wrong(c == '.' ? "the file has a '.'; folders are divided by '/'"
                              : "a file's name has letters, digits, '_' and '-'");
      }
    }
  }
  return base::Ok();
}

bool IsSourceHash(std::string_view hash) {
  return hash.starts_with("sha256:") && hash.size() == 7 + 64 &&
         hash.find_first_not_of("0123456789abcdef", 7) == std::string_view::npos;
}

Status CheckSource(const api::Source& source) {
  if (!IsSourceHash(source.hash)) {
    return Invalid("want \"sha256:\" and 64 hex digits, the hash of the content tree",
                   "/spec/source/hash");
  }
  RETURN_IF_ERROR(CheckTextSize("a source path", source.path, kMaxPath, "/spec/source/path"));
  if (source.type != "code") {
    if (!source.code.empty())
      return Invalid(fmt::format("code is for type \"code\"; the type is \"{}\"", source.type),
                     "/spec/source/code");
    return base::Ok();
  }
  if (source.code.empty())
    return Invalid("type \"code\" needs the text of the file", "/spec/source/code");
  return CheckTextSize("inline code", source.code, kMaxInlineCodeBytes, "/spec/source/code");
}

// Names are shown, values never.
Status CheckEnvironment(const std::map<std::string, std::string>& environment) {
  const std::string path = "/spec/environment";
  if (environment.size() > kMaxVariables) {
    return Invalid(
        fmt::format("at most {} environment variables, got {}", kMaxVariables, environment.size()),
        path);
  }
  size_t total = 0;
  for (const auto& [name, value] : environment) {
    const std::string at = MemberPath(path, name);
    if (!base::IsUtf8(name) || !IsIdentifier(name)) {
      return Invalid(
          "the name of an environment variable has letters, digits and '_', and does not begin "
          "with a digit",
          base::IsUtf8(name) ? at : path);
    }
    if (name.starts_with("SLESS_"))
      return Invalid("environment variables that begin with SLESS_ are set by sless itself", at);
    if (!base::IsUtf8(value)) return Invalid("the value is not valid UTF-8", at);
    if (value.find('\0') != std::string::npos) return Invalid("the value has a NUL character", at);
    total += name.size() + value.size() + 2;  // as the kernel counts: '=' and the final NUL
  }
  if (total > kMaxEnvironmentBytes) {
    return Invalid(fmt::format("all environment variables together have at most {} bytes, got {}",
                               kMaxEnvironmentBytes, total),
                   path);
  }
  return base::Ok();
}

Status CheckLabels(const std::map<std::string, std::string>& labels) {
  const std::string path = "/spec/labels";
  if (labels.size() > kMaxLabels)
    return Invalid(fmt::format("at most {} labels, got {}", kMaxLabels, labels.size()), path);
  for (const auto& [key, value] : labels) {
    bool good = !key.empty() && key.size() <= kMaxLabelKey;
    for (const char c : key)
      good = good && (IsIn(c, kLetters) || IsIn(c, kDigits) || IsIn(c, "-_./"));
    if (!good) {
      return Invalid(
          fmt::format("the key of a label has 1 to {} letters, digits, '-', '_', '.' and '/'",
                      kMaxLabelKey),
          base::IsUtf8(key) ? MemberPath(path, key) : path);
    }
    if (!base::IsUtf8(value)) return Invalid("the value is not valid UTF-8", MemberPath(path, key));
    RETURN_IF_ERROR(
        CheckTextSize("the value of a label", value, kMaxLabelValue, MemberPath(path, key)));
  }
  return base::Ok();
}

}  // namespace

Status ValidateFunction(const api::FunctionSpec& spec) {
  RETURN_IF_ERROR(CheckBounds(spec, "/spec"));
  RETURN_IF_ERROR(CheckEntrypoint(spec.entrypoint));
  RETURN_IF_ERROR(CheckSource(spec.source));
  RETURN_IF_ERROR(CheckTextSize("codeHash", spec.code_hash, kMaxCodeHash, "/spec/codeHash"));
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
