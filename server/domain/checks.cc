#include "server/domain/checks.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "client/api/rules.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/domain/validate.h"

namespace sless::domain {

using base::Code;
using base::Err;

tl::unexpected<base::Error> Invalid(std::string message, std::string path) {
  return Err(Code::kInvalidArgument, std::move(message), std::move(path));
}

base::Status CheckLabel(std::string_view what, const std::string& name, const std::string& path) {
  const std::string problem = base::DnsLabelProblem(name);
  if (problem.empty()) return base::Ok();
  return Invalid(fmt::format("{} is a DNS label (1 to 63 of a-z, 0-9 and '-'): {}", what, problem),
                 path);
}

base::Status CheckText(std::string_view what, const std::string& text, size_t max,
                       const std::string& path) {
  const auto problem = api::TextProblem(text, max);
  return problem.empty() ? base::Ok() : Invalid(fmt::format("{} {}", what, problem), path);
}

base::Status CheckEvent(const std::string& text, const std::string& path) {
  RETURN_IF_ERROR(CheckText("an event", text, api::kMaxEventBytes, path));
  const auto json = base::ParseJson(text);
  if (!json) return Invalid(json.error().message, path);
  return base::Ok();
}

std::string MemberPath(const std::string& path, std::string_view key) {
  std::string escaped;
  for (const char c : base::Truncate(key, 200))
    escaped += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return path + "/" + escaped;
}

}  // namespace sless::domain
