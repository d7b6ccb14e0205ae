#include "client/api/http_rules.h"

#include <fmt/format.h>

#include "client/base/strings.h"

namespace sless::api {
namespace {

constexpr size_t kMaxPath = 512;

bool StandsUnencoded(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("/-._~!$&'()*+,;=:@").find(c) != std::string_view::npos;
}

}  // namespace

const std::vector<std::string>& HttpMethods() {
  static const std::vector<std::string> methods = {"GET",   "HEAD",   "POST",   "PUT",
                                                   "PATCH", "DELETE", "OPTIONS"};
  return methods;
}

// A prefix is compared with request paths segment by segment, so it must have one spelling only.
std::string HttpPathProblem(std::string_view path) {
  if (path.size() > kMaxPath)
    return fmt::format("a path has at most {} bytes, got {}", kMaxPath, path.size());
  if (!path.starts_with('/')) return "it must begin with \"/\"";
  if (path == "/") return "";
  for (const char c : path) {
    if (c == '%') return "percent-encoding is not supported here";
    if (c == '?' || c == '#') return "a query and a fragment are no part of it";
    if (!StandsUnencoded(c)) return "it has a character that no URL path has unencoded";
  }
  for (const auto& segment : base::Split(path.substr(1), '/')) {
    if (segment.empty())
      return path.ends_with('/') ? "it must not end with \"/\"" : "it has \"//\"";
    if (segment == "." || segment == "..") return "it has \".\" or \"..\" as a segment";
  }
  return "";
}

}  // namespace sless::api
