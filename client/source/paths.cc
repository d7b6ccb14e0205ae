#include "client/source/paths.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/base/strings.h"

namespace sless::source {

using base::Code;

std::string PathProblem(std::string_view path, const Limits& limits) {
  if (path.empty()) return "the name is empty";
  if (base::Contains(path, '\0')) return "the name holds a NUL";
  if (!base::IsUtf8(path)) return "the name is not UTF-8";
  if (path.size() > limits.max_path_bytes) {
    return fmt::format("the name has {} bytes, at most {} are allowed", path.size(),
                       limits.max_path_bytes);
  }
  if (path.front() == '/') return "the name is absolute";
  if (base::Contains(path, '\\')) return "the name holds a backslash";
  if (path.size() >= 2 && path[1] == ':' && ((path[0] | 32) >= 'a' && (path[0] | 32) <= 'z')) {
    return "the name starts with a drive letter";
  }
  if (std::any_of(path.begin(), path.end(),
                  [](unsigned char c) { return c < 0x20 || c == 0x7f; })) {
    return "the name holds a control character";
  }
  const auto segments = base::Split(path, '/');
  if (segments.size() > limits.max_depth) {
    return fmt::format("it lies {} levels deep, at most {} are allowed", segments.size(),
                       limits.max_depth);
  }
  for (const auto& segment : segments) {
    if (segment == "..") return "the name leaves the tree (\"..\")";
    if (segment.empty() || segment == ".") return "the name has an empty segment";
    if (segment.size() > 255) return "a segment of the name has more than 255 bytes";
  }
  return "";
}

std::string ShowPath(std::string_view path) {
  std::string shown = "\"";
  const bool utf8 = base::IsUtf8(path);
  for (const unsigned char c : path) {
    if (shown.size() > 200) return shown + "…\"";
    if (c < 0x20 || c == 0x7f || c == '"' || (c >= 0x80 && !utf8)) {
      shown += fmt::format("\\x{:02x}", c);
    } else {
      shown += static_cast<char>(c);
    }
  }
  return shown + "\"";
}

tl::unexpected<base::Error> BadFile(std::string_view path, std::string_view why, Code code) {
  base::Error error{code, fmt::format("{}: {}", ShowPath(path), why), "", "", {}};
  error.source.file = base::IsUtf8(path) ? std::string(path) : ShowPath(path);
  return base::Err(std::move(error));
}

tl::unexpected<base::Error> BadArchive(std::string_view path, std::string_view why, Code code) {
  base::Error error{code,
                    path.empty() ? fmt::format("the archive {}", why)
                                 : fmt::format("entry {}: {}", ShowPath(path), why),
                    "",
                    "BadArchive",
                    {}};
  error.source.file = base::IsUtf8(path) ? std::string(path) : ShowPath(path);
  return base::Err(std::move(error));
}

std::string ShowBytes(uint64_t bytes) {
  if (bytes < 10 * 1024) return fmt::format("{} bytes", bytes);
  if (bytes < (10ull << 20)) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

}  // namespace sless::source
