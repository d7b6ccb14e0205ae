#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/result.h"
#include "server/config/options.h"

namespace sless::config {

/// One setting, for help texts and docs.
struct Setting {
  std::string name;  ///< "http.workers"
  std::string text;
  std::string fallback;  ///< default as written in a file, "" for none
  std::string type;      ///< text | number | switch | list
  std::string allowed;   ///< "1 to 1024", "trace, debug, …", "" for anything
};
/// In the order of their declaration.
std::vector<Setting> Settings();

/// "SLESS_HTTP_WORKERS" for "http.workers".
std::string EnvironmentName(std::string_view setting);
/// "--http-workers" for "http.workers".
std::string FlagName(std::string_view setting);

/// Where values come from; later ones win: defaults, file, environment, flags.
struct Sources {
  std::string file_path;  ///< "" for none; read by the caller, named in errors
  std::string file_text;  ///< YAML
  std::map<std::string, std::string>
      environment;  ///< the process's; names that are no setting are ignored
  std::map<std::string, std::string> flags;  ///< by setting name
};
/// Errors: kInvalidArgument, naming file:line, variable or flag, what was found and what is
/// allowed; for an unknown key the nearest known one.
base::Result<Options> Load(const Sources& sources);

/// The settings in effect as a file that Load takes.
std::string ToYaml(const Options& options);

}  // namespace sless::config
