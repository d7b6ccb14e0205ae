#include "client/api/rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/base/strings.h"

namespace sless::api {
namespace {

constexpr size_t kMaxEntrypointBytes = 256;
constexpr size_t kMaxLabelKeyBytes = 128;
constexpr size_t kMaxHttpPathBytes = 512;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsAlnum(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c); }

// Letters, digits and `more`.
bool Holds(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return IsAlnum(c) || base::Contains(more, c); });
}

bool IsIdentifier(std::string_view text, std::string_view more) {
  return !text.empty() && !IsDigit(text.front()) && Holds(text, more);
}

}  // namespace

std::string TextProblem(std::string_view text, size_t max) {
  if (text.size() > max) return fmt::format("must have at most {} bytes, not {}", max, text.size());
  if (base::Contains(text, '\0')) return "must not hold a NUL character";
  return "";
}

std::string EntrypointProblem(std::string_view entrypoint) {
  if (auto problem = TextProblem(entrypoint, kMaxEntrypointBytes); !problem.empty()) return problem;
  const auto wrong = [](std::string_view why) {
    return fmt::format(
        "must be \"file.function\" without the file's ending, like \"handler.handle\" or "
        "\"src/app.main\"; {}",
        why);
  };
  const size_t dot = entrypoint.rfind('.');
  if (dot == std::string_view::npos) return wrong("there is no '.'");
  const auto function = entrypoint.substr(dot + 1);
  for (const std::string_view ending : {"py", "js", "mjs", "cjs", "ts"}) {
    if (function == ending)
      return wrong("this is a file with its ending, and the function is missing");
  }
  if (!IsIdentifier(function, "_$"))
    return wrong("what follows the last '.' cannot be the name of a function");
  for (const auto& part : base::Split(entrypoint.substr(0, dot), '/')) {
    if (part.empty()) return wrong("the file is a relative path without empty parts");
    if (part.find('.') != part.npos) return wrong("the file has a '.'; folders are divided by '/'");
    if (!Holds(part, "_-")) return wrong("the file's name has letters, digits, '_' and '-'");
  }
  return "";
}

std::string VariableNameProblem(std::string_view name) {
  if (name.empty()) return "needs a name";
  if (!IsIdentifier(name, "_"))
    return "must have a name of letters, digits and \"_\" that does not begin with a digit";
  if (name.starts_with("SLESS_"))
    return "has a reserved name: names that begin with SLESS_ are set by sless itself";
  return "";
}

std::string LabelKeyProblem(std::string_view key) {
  if (!key.empty() && key.size() <= kMaxLabelKeyBytes && Holds(key, "-_./")) return "";
  return fmt::format("must have a key of 1 to {} letters, digits and \"-_./\"", kMaxLabelKeyBytes);
}

const std::vector<std::string>& HttpMethods() {
  static const std::vector<std::string> methods = {"GET",   "HEAD",   "POST",   "PUT",
                                                   "PATCH", "DELETE", "OPTIONS"};
  return methods;
}

// A prefix is compared with request paths segment by segment, so it must have one spelling only.
std::string HttpPathProblem(std::string_view path) {
  if (auto problem = TextProblem(path, kMaxHttpPathBytes); !problem.empty()) return problem;
  if (!path.starts_with('/')) return "must begin with \"/\"";
  if (path == "/") return "";
  for (const char c : path) {
    if (c == '%') return "must not hold percent-encoding";
    if (c == '?' || c == '#') return "must not hold a query or a fragment";
  }
  if (!Holds(path, "/-._~!$&'()*+,;=:@"))
    return "must hold only characters that a URL path has unencoded";
  for (const auto& segment : base::Split(path.substr(1), '/')) {
    if (segment.empty())
      return path.ends_with('/') ? "must not end with \"/\"" : "must not hold \"//\"";
    if (segment == "." || segment == "..") return "must not hold \".\" or \"..\" as a segment";
  }
  return "";
}

}  // namespace sless::api
