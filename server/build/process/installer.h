#pragma once

// Dependencies: what a source asks for, and pip or npm to get it.

#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/source/source.h"
#include "server/build/process/process_builder.h"

namespace sless::build {

/// What a source asks to have installed. The key names the layer: equal keys, equal layers.
struct Manifest {
  std::string runtime;
  std::string file;  ///< requirements.txt or package.json
  std::string text;
  bool locked = false;  ///< Node: a lock file npm can use lies beside it
  std::string key;      ///< 64 hex digits
};

/// Reads requirements.txt or package.json of a code layer; nullopt where nothing is to be
/// installed. Error: kFailedPrecondition, reason BuildFailed, source.file: the manifest or its lock
/// file cannot be read, or asks for what cannot be installed apart from the code.
base::Result<std::optional<Manifest>> ReadManifest(const std::string& code_dir,
                                                   const std::string& runtime,
                                                   const std::string& source_hash,
                                                   const LogLine& log);

/// Runs pip and npm. Thread safety: all methods may be called at the same time from any thread.
class Installer {
 public:
  Installer(const ProcessBuilderOptions& options, std::string etc_dir, const base::Clock& clock);

  /// Installs into `work`/layer, an empty folder that is there. `work` is for this alone. Errors as
  /// Builder::Build.
  base::Status Install(const Manifest& manifest, const std::string& code_dir,
                       const std::string& work, base::Deadline deadline, std::stop_token stop,
                       const LogLine& log);

 private:
  struct Command {
    std::vector<std::string> words;
    std::vector<std::string> needs;     ///< host paths that the sandbox must show
    std::vector<std::string> settings;  ///< files of settings beside it, that may be there
    std::string path;                   ///< PATH for it
  };
  base::Result<Command> FindPip() const;
  base::Result<Command> FindNpm() const;
  base::Result<Command> PipCommand(const std::string& code, const std::string& work) const;
  base::Result<Command> NpmCommand(const Manifest& manifest) const;

  const ProcessBuilderOptions& options_;
  std::string etc_dir_;
  const base::Clock& clock_;
};

}  // namespace sless::build
