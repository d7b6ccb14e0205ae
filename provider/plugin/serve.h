#pragma once

// A plugin's whole process: flags, handshake, serving, the end.

#include <functional>
#include <memory>
#include <string>

#include "client/base/log.h"
#include "provider/framework/provider.h"

namespace sless::plugin {

struct Program {
  std::string name;     ///< "sless": the program is terraform-provider-sless, its log variable
                        ///< TF_LOG_PROVIDER_SLESS
  std::string address;  ///< source address for a developer's host: "sless/sless"
  std::string version;
};

/// Called once, before the handshake: must be quick and do no I/O.
using ProviderFactory = std::function<std::unique_ptr<framework::Provider>()>;

/// The body of main(). Serves the host that started us, or with --debug whoever is told how to
/// attach, until the host, a signal or the host's death ends it; returns the exit code. Takes over
/// stdout, SIGINT, SIGTERM, SIGPIPE, the signals of crashes, and removes the host's variables
/// (PLUGIN_*) from the environment. `environment` is main's environ.
int Serve(int argc, char** argv, char** environment, const Program& program,
          const ProviderFactory& factory);

}  // namespace sless::plugin
