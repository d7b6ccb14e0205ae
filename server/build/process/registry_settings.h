#pragma once

// The server's own settings for pip and npm: which registries, through which proxy, with which
// certificates and credentials.

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sless::build {

enum class Tool { kPip, kNpm };

/// What one of the two is given of them. Settings of the other are left out: a package that runs
/// code while pip builds it shall not see npm's credentials.
struct RegistrySettings {
  std::map<std::string, std::string> environment;
  std::vector<std::pair<std::string, std::string>>
      home_files;                    ///< path of a configuration file → its name below HOME
  std::vector<std::string> paths;    ///< files of the whole system, and what all these name: host
                                     ///< paths that must be seen at the same place
  std::vector<std::string> secrets;  ///< passwords and tokens in them
};

/// Reads them. `environment` is what the server may hand on, `home` its home ("" if none),
/// `system_files` more configuration files that the tool reads where it lies. What is not there or
/// cannot be read is left out.
RegistrySettings ReadRegistrySettings(Tool tool,
                                      const std::map<std::string, std::string>& environment,
                                      const std::string& home,
                                      const std::vector<std::string>& system_files);

/// `line` without the user information of URLs and without `secrets`; "***" stands there instead.
std::string Redact(std::string_view line, const std::vector<std::string>& secrets);

/// Every `what` (not empty) in `text` becomes `with`.
void ReplaceAll(std::string& text, std::string_view what, std::string_view with);

}  // namespace sless::build
