#include "server/build/process/local_paths.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "client/base/strings.h"

namespace sless::build {
namespace {

constexpr std::string_view kBlank = " \t";

bool Letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool StartsWithAny(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return text.starts_with(start); });
}

bool AllOf(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return Letter(c) || base::Contains(others, c); });
}

// pip ends lines where Python does, and decodes what a comment names.
bool OddText(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\r' && text.substr(i + 1, 1) != "\n" && i + 1 < text.size()) return true;
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') return true;
  }
  for (const char* line_end : {"\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"}) {
    if (base::Contains(text, line_end)) return true;
  }
  const size_t first = text.find('\n');
  const size_t second = first == std::string_view::npos ? first : text.find('\n', first + 1);
  return base::Contains(text.substr(0, second), "coding");
}

std::string_view WithoutComment(std::string_view line) {
  for (size_t i = line.find('#'); i != std::string_view::npos; i = line.find('#', i + 1)) {
    if (i == 0 || base::Contains(kBlank, line.substr(i - 1, 1))) return line.substr(0, i);
  }
  return line;
}

std::string_view WithoutHashes(std::string_view line) {
  constexpr std::string_view kHash = "--hash=";
  for (;;) {
    line = base::Trim(line);
    const size_t blank = line.find_last_of(kBlank);
    const auto word = blank == std::string_view::npos ? line : line.substr(blank + 1);
    if (!word.starts_with(kHash) || !AllOf(word.substr(kHash.size()), ":")) return line;
    line = line.substr(0, line.size() - word.size());
  }
}

bool RemoteRequirement(std::string_view raw) {
  const auto line = base::Trim(WithoutComment(raw));
  if (line.empty()) return true;
  const auto wanted = WithoutHashes(line);
  const std::string lower = base::Lower(wanted);
  if (StartsWithAny(lower, {"http://", "https://"})) {
    const size_t end = std::min(wanted.find_first_of(kBlank), wanted.size());
    const auto rest = base::Trim(wanted.substr(end));
    return !base::Contains(wanted, "$") && (rest.empty() || rest.starts_with(";"));
  }
  const auto name = base::Trim(std::string_view(lower).substr(0, lower.find(';')));
  if (name.empty() || !Letter(name[0]) || !AllOf(name, "._-[],<>=!~*+() \t")) return false;
  if (base::Contains(name, " -") || base::Contains(name, "\t-")) return false;
  // A file of that name in the source is what pip would take.
  for (const char* archive : {".whl", ".zip", ".tar", ".tgz", ".tbz", ".txz", ".tlz"}) {
    if (base::Contains(name, archive)) return false;
  }
  return true;
}

bool ExistsBelow(const std::string& folder, std::string_view name) {
  std::error_code ignored;
  return std::filesystem::exists(folder + "/" + std::string(name), ignored);
}

bool RemoteSpec(std::string_view raw, const std::string& code_dir) {
  const std::string spec = base::Lower(base::Trim(raw));
  if (IsLocalSpec(raw, code_dir)) return false;
  if (StartsWithAny(spec, {"http://", "https://", "git://", "git+http://", "git+https://",
                           "git+ssh://", "ssh://", "github:", "gitlab:", "bitbucket:", "gist:"}))
    return true;
  if (spec.starts_with("npm:"))
    return !base::Contains(spec, "..") && !base::Contains(spec.substr(4), ":");
  if (spec.starts_with("$")) return AllOf(spec.substr(1), "@/._-");
  // A version, a range, a tag, or user/repository of GitHub.
  return AllOf(spec, " ._-+*^~<>=|,/#");
}

bool RemoteUrl(const std::string& url) {
  return StartsWithAny(base::Lower(url), {"http://", "https://", "git://", "git+http://",
                                          "git+https://", "git+ssh://", "ssh://"});
}

bool RemoteInLock(const nlohmann::json& value, const std::string& code_dir) {
  if (value.is_string()) {
    return !StartsWithAny(base::Lower(value.get_ref<const std::string&>()), {"file:", "link:"});
  }
  if (!value.is_structured()) return true;
  for (const auto& [name, item] : value.items()) {
    if (name == "resolved" && !(item.is_string() && RemoteUrl(item.get_ref<const std::string&>())))
      return false;
    if (name == "link" && item != false) return false;
    if (name == "packages" && item.is_object()) {
      for (const auto& [place, package] : item.items()) {
        if (!place.empty() && !place.starts_with("node_modules/")) return false;
      }
    }
    if (item.is_string() && base::Contains(name, "ependencies") &&
        !RemoteSpec(item.get_ref<const std::string&>(), code_dir))
      return false;
    if (!RemoteInLock(item, code_dir)) return false;
  }
  return true;
}

}  // namespace

bool OnlyRemoteRequirements(std::string_view text) {
  if (OddText(text)) return false;
  std::string joined;
  for (const auto& raw : base::Split(text, '\n')) {
    std::string_view line = raw;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool goes_on = line.ends_with('\\') && !base::Trim(line).starts_with('#');
    if (goes_on) {
      joined += line.substr(0, line.find_last_not_of('\\') + 1);
      continue;
    }
    joined += line;
    if (!RemoteRequirement(joined)) return false;
    joined.clear();
  }
  return RemoteRequirement(joined);
}

bool IsLocalSpec(std::string_view raw, const std::string& code_dir) {
  std::string spec = base::Lower(base::Trim(raw));
  if (StartsWithAny(spec, {"file:", "link:", ".", "/", "~/", "\\"})) return true;
  if (spec.size() > 1 && std::isalpha(static_cast<unsigned char>(spec[0])) != 0 && spec[1] == ':')
    return true;
  if (base::Contains(spec, ":")) return false;
  const std::string_view path = std::string_view(spec).substr(0, spec.find('#'));
  if (path.ends_with(".tgz") || path.ends_with(".tar.gz") || path.ends_with(".tar")) return true;
  // One '/' alone may be a repository of GitHub.
  const auto slashes = std::count(path.begin(), path.end(), '/');
  return slashes > 1 ||
         (slashes == 1 && ExistsBelow(code_dir, base::Trim(raw).substr(0, path.size())));
}

bool OnlyRemoteSpecs(const nlohmann::json& value, const std::string& code_dir) {
  if (value.is_string()) return RemoteSpec(value.get_ref<const std::string&>(), code_dir);
  return value.is_object() && std::all_of(value.begin(), value.end(), [&](const auto& item) {
           return OnlyRemoteSpecs(item, code_dir);
         });
}

bool OnlyRemoteLock(std::string_view text, const std::string& code_dir) {
  if (text.empty()) return true;
  const auto lock = base::ParseJson(text);
  return lock && RemoteInLock(*lock, code_dir);
}

bool OnlyRemoteNpmrc(std::string_view text) {
  for (const auto& raw : base::Split(text, '\n')) {
    const auto line = base::Trim(raw);
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    const size_t equals = line.find('=');
    if (equals == std::string_view::npos) return false;
    const auto name = base::Trim(line.substr(0, equals)),
               value = base::Trim(line.substr(equals + 1));
    const bool url = StartsWithAny(value, {"http://", "https://"}) && !base::Contains(value, "$");
    const bool switched =
        value == "true" || value == "false" ||
        (!value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos);
    const bool credential = name.starts_with("//") && !base::Contains(value, "/");
    if (!switched && !credential && !(url && name.ends_with("registry"))) return false;
  }
  return true;
}

}  // namespace sless::build
