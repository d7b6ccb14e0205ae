#include "server/build/process/registry_settings.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include "client/base/strings.h"
#include "server/sandbox/sandbox.h"

namespace sless::build {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLeastSecret = 6;  // a shorter one would be found in any text
constexpr std::string_view kBlank = " \t\r";

constexpr std::array<std::string_view, 2> kPipSystem{"/etc/pip.conf", "/etc/xdg/pip/pip.conf"};
constexpr std::array<std::string_view, 2> kPipHome{".config/pip/pip.conf", ".pip/pip.conf"};

// The settings that name files. Not each value that looks like a path: a cache or a prefix of the
// server's is no business of a build.
constexpr std::array<std::string_view, 17> kPathSettings{"cert",
                                                         "client_cert",
                                                         "find_links",
                                                         "constraint",
                                                         "build_constraint",
                                                         "index_url",
                                                         "extra_index_url",
                                                         "config_file",
                                                         "cafile",
                                                         "certfile",
                                                         "keyfile",
                                                         "userconfig",
                                                         "globalconfig",
                                                         "ssl_cert_file",
                                                         "ssl_cert_dir",
                                                         "node_extra_ca_certs",
                                                         "requests_ca_bundle"};

// "PIP_FIND_LINKS", "find-links" and "find_links" are one; of "//host/:certfile" the end counts.
std::string Setting(std::string_view name) {
  std::string out(name.substr(name.rfind(':') == std::string_view::npos ? 0 : name.rfind(':') + 1));
  for (char& c : out)
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view prefix : {"pip_", "npm_config_"}) {
    if (out.starts_with(prefix)) return out.substr(prefix.size());
  }
  return out;
}

class Reader {
 public:
  void Take(std::string_view name, std::string_view value) {
    const std::string setting = Setting(name);
    if (std::find(kPathSettings.begin(), kPathSettings.end(), setting) != kPathSettings.end())
      TakePaths(value);
    if (setting == "_authtoken" || setting == "_password" || setting == "_auth") AddSecret(value);
    TakeUserInfo(value);
  }

  // "name = value", and more values on indented lines below: close enough to both formats.
  void TakeFile(const std::string& path) {
    std::ifstream in(path);
    std::string line, name;
    while (std::getline(in, line)) {
      const std::string text(base::Trim(line));
      if (text.empty() || text[0] == '#' || text[0] == ';' || text[0] == '[') continue;
      const size_t equals = text.find('=');
      if (base::Contains(kBlank, line[0]) && !name.empty()) {
        Take(name, text);
      } else if (equals != std::string::npos) {
        name = base::Trim(std::string_view(text).substr(0, equals));
        Take(name, base::Trim(std::string_view(text).substr(equals + 1)));
      }
    }
  }

  void AddPath(const std::string& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error || real == "/" || real.string().starts_with("/dev/")) return;
    for (const std::string& shown : {path, real.string()}) {
      if (!sandbox::AlwaysThere(shown)) paths_.insert(shown);
    }
  }

  std::vector<std::string> Paths() const { return {paths_.begin(), paths_.end()}; }
  std::vector<std::string> Secrets() const { return {secrets_.begin(), secrets_.end()}; }

 private:
  void TakePaths(std::string_view value) {
    for (size_t at = 0; at < value.size();) {
      const size_t end = std::min(value.find_first_of(" \t,\"", at), value.size());
      std::string_view word = value.substr(at, end - at);
      if (word.starts_with("file://")) word.remove_prefix(7);
      if (word.starts_with('/')) AddPath(std::string(word));
      at = end + 1;
    }
  }

  void TakeUserInfo(std::string_view value) {
    for (size_t at = value.find("://"); at != std::string_view::npos; at = value.find("://", at)) {
      at += 3;
      const std::string_view authority = value.substr(at, value.find_first_of("/ \t,\"", at) - at);
      const size_t end = authority.rfind('@');
      if (end == std::string_view::npos) continue;
      const std::string_view info = authority.substr(0, end);
      const size_t colon = info.find(':');
      AddSecret(colon == std::string_view::npos ? info : info.substr(colon + 1));
    }
  }

  void AddSecret(std::string_view text) {
    if (text.size() >= kLeastSecret) secrets_.insert(std::string(text));
  }

  std::set<std::string> paths_, secrets_;
};

}  // namespace

RegistrySettings ReadRegistrySettings(Tool tool,
                                      const std::map<std::string, std::string>& environment,
                                      const std::string& home,
                                      const std::vector<std::string>& system_files) {
  RegistrySettings settings;
  Reader reader;
  const auto take_file = [&](const std::string& path) {
    std::error_code ignored;
    if (!fs::is_regular_file(path, ignored)) return false;
    reader.TakeFile(path);
    return true;
  };
  for (const auto& [name, value] : environment) {
    const bool pip = name.starts_with("PIP_") || name == "REQUESTS_CA_BUNDLE";
    const bool npm = name.starts_with("NPM_CONFIG_") || name.starts_with("npm_config_") ||
                     name == "NODE_EXTRA_CA_CERTS";
    const std::string setting = Setting(name);
    if ((pip && tool == Tool::kNpm) || (npm && tool == Tool::kPip)) continue;
    if (npm && setting == "cache") continue;  // one cache for each build (0013)
    settings.environment.emplace(name, value);
    reader.Take(name, value);
    if (setting == "config_file" || setting == "userconfig" || setting == "globalconfig")
      take_file(value);
  }
  std::vector<std::string> system = system_files;
  std::vector<std::string> below_home;
  if (tool == Tool::kPip) {
    system.insert(system.end(), kPipSystem.begin(), kPipSystem.end());
    below_home.assign(kPipHome.begin(), kPipHome.end());
  } else {
    system.emplace_back("/etc/npmrc");
    below_home.emplace_back(".npmrc");
  }
  for (const auto& path : system) {
    if (take_file(path)) reader.AddPath(path);
  }
  for (const auto& name : below_home) {
    if (home.empty()) continue;
    const std::string path = home + "/" + name;
    if (take_file(path)) settings.home_files.emplace_back(path, name);
  }
  settings.paths = reader.Paths();
  settings.secrets = reader.Secrets();
  return settings;
}

std::string Redact(std::string_view line, const std::vector<std::string>& secrets) {
  std::string out;
  for (size_t at = 0; at < line.size();) {
    const size_t scheme = line.find("://", at);
    if (scheme == std::string_view::npos) {
      out += line.substr(at);
      break;
    }
    const size_t begin = scheme + 3;
    const size_t end = std::min(line.find_first_of("/?# \t\"'<>,", begin), line.size());
    const size_t info = line.substr(begin, end - begin).rfind('@');
    out += line.substr(at, begin - at);
    if (info != std::string_view::npos) out += "***";
    at = info == std::string_view::npos ? begin : begin + info;
  }
  for (const auto& secret : secrets) ReplaceAll(out, secret, "***");
  return out;
}

void ReplaceAll(std::string& text, std::string_view what, std::string_view with) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
}

}  // namespace sless::build
