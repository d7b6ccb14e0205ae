#include "server/runner/json_text.h"

#include <nlohmann/json.hpp>

#include "client/base/json.h"

namespace sless::runner {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

// Behind the string that begins at `at`.
size_t EndOfString(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return std::min(at + 1, text.size());
}

// Behind the value that begins at `at`.
size_t EndOfValue(std::string_view text, size_t at) {
  for (int depth = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = EndOfString(text, at);
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at;
    } else if (c == '}' || c == ']') {
      --depth;
      ++at;
    } else {
      at = std::min(text.find_first_of("\"{}[],: \t\r\n", at + 1), text.size());
      if (depth > 0) continue;
    }
    if (depth == 0) break;
  }
  return at;
}

std::string NameOf(std::string_view quoted) {
  const auto name = base::ParseJson(quoted);
  return name && name->is_string() ? name->get<std::string>() : "";
}

}  // namespace

std::vector<std::pair<std::string, std::string_view>> PartsOf(std::string_view text) {
  std::vector<std::pair<std::string, std::string_view>> parts;
  size_t at = text.find_first_not_of(kSpace);
  if (at == std::string_view::npos || (text[at] != '{' && text[at] != '[')) return parts;
  const bool object = text[at] == '{';
  while ((at = text.find_first_not_of(" \t\r\n,", at + 1)) < text.size()) {
    if (text[at] == '}' || text[at] == ']') break;
    std::string name;
    if (object) {
      const size_t end = EndOfString(text, at);
      name = NameOf(text.substr(at, end - at));
      at = text.find_first_not_of(" \t\r\n:", end);
      if (at == std::string_view::npos) break;
    }
    const size_t end = EndOfValue(text, at);
    parts.emplace_back(std::move(name), text.substr(at, end - at));
    at = end - 1;
  }
  return parts;
}

}  // namespace sless::runner
