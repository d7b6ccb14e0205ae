#include "server/http/path.h"

#include <fmt/format.h>

#include "client/base/strings.h"

namespace sless::http {
namespace {

base::Status Bad(std::string_view what) {
  return base::Err(base::Code::kInvalidArgument, fmt::format("the path of the URL {}", what), "",
                   "BadPath");
}

bool IsPathByte(char c) {
  return c > 0x20 && c < 0x7f && c != '"' && c != '<' && c != '>' && c != '#';
}

bool IsDotSegment(std::string_view segment) {
  // "..;x" is ".." to servers that know path parameters.
  segment = segment.substr(0, segment.find(';'));
  return segment == "." || segment == "..";
}

}  // namespace

std::vector<std::string_view> PathSegments(std::string_view path) {
  std::vector<std::string_view> out;
  if (!path.empty()) path.remove_prefix(1);
  for (;;) {
    const auto slash = path.find('/');
    out.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return out;
    path.remove_prefix(slash + 1);
  }
}

base::Status CheckPath(std::string_view path) {
  if (path.empty() || path[0] != '/') return Bad("must begin with \"/\"");
  for (const char c : path) {
    if (!IsPathByte(c)) return Bad("has a character that must be percent-encoded");
  }
  const auto decoded = base::PercentDecode(path);
  if (!decoded) return Bad("has a broken percent escape");
  if (base::Contains(*decoded, '\0')) return Bad("has a NUL byte");
  if (base::Contains(*decoded, '\\')) return Bad("has a backslash");
  for (const auto segment : PathSegments(*decoded)) {
    if (IsDotSegment(segment)) return Bad("has a dot segment (\".\" or \"..\")");
  }
  return base::Ok();
}

base::Status CheckStrictSegment(std::string_view segment) {
  if (segment.empty()) return Bad("has an empty segment");
  const auto decoded = base::PercentDecode(segment);
  if (!decoded || base::Contains(*decoded, '/')) return Bad("has an escaped \"/\"");
  return base::Ok();
}

std::string CanonicalPath(std::string_view path) {
  const auto decoded = base::PercentDecode(path).value_or(std::string(path));
  std::string out;
  for (const auto segment : PathSegments(decoded)) {
    if (!segment.empty()) out += "/" + std::string(segment);
  }
  return out.empty() ? "/" : out;
}

}  // namespace sless::http
