#pragma once

// Builds on this host: content-addressed code layers and dependency layers made by pip and npm in a
// sandbox.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/base/clock.h"
#include "client/base/log.h"
#include "client/base/result.h"
#include "server/build/builder.h"

namespace sless::build {

/// Makes all that was written to the file system of the folder `path` survive a power cut, the
/// entry of `path` itself in the folder above included. Error: kUnavailable.
base::Status SyncFileSystem(const std::string& path);

struct ProcessBuilderOptions {
  /// a folder of this builder alone: code/, deps/, sums/, tmp/, etc/; made if missing (0700)
  std::string dir;
  std::string bwrap = "bwrap";
  bool sandbox = true;  ///< false: --insecure-no-sandbox
  std::string path =
      "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";  ///< the server's PATH
  /// Pythons tried for `-m pip`, in order; one of the right version with pip wins.
  std::vector<std::string> pythons = {"/usr/bin/python3.11", "/usr/local/bin/python3.11",
                                      "python3.11"};
  std::string npm = "npm";    ///< a name is looked for on `path`
  std::string node = "node";  ///< its folder is put in front of the PATH of npm
  /// What of the server's environment pip and npm may see, for registries, proxies and
  /// certificates; main fills it with the PIP_*, NPM_CONFIG_*, npm_config_*, *_PROXY, *_proxy,
  /// SSL_CERT_*, REQUESTS_CA_BUNDLE and NODE_EXTRA_CA_CERTS variables.
  std::map<std::string, std::string> environment;
  /// Called with a layer before it gets its name, and with the folder of its name after that.
  std::function<base::Status(const std::string& path)> sync = SyncFileSystem;
  uint64_t max_install_bytes = 4ull << 30;  ///< of the disk, for all that one installation writes
  std::string home;  ///< the server's home, whose pip and npm configuration is used; "" if none
};

/// Opens the layer store; removes what a killed build left behind, and layers that lack something
/// of what was built, so that they are built again. `clock` and `log` outlive the builder. Error:
/// kInternal: the folder cannot be used.
base::Result<std::unique_ptr<Builder>> MakeProcessBuilder(ProcessBuilderOptions options,
                                                          const base::Clock& clock,
                                                          base::Logger& log);

}  // namespace sless::build
