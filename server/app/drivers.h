#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/base/clock.h"
#include "client/base/log.h"
#include "server/app/data_dir.h"
#include "server/artifact/artifact_store.h"
#include "server/build/builder.h"
#include "server/config/options.h"
#include "server/invocations/log_store.h"
#include "server/runtime/runtime.h"
#include "server/store/object_store.h"

namespace sless::app {

/// What the process got from outside; read by main once.
struct Environment {
  /// folder of slessd: sless-runner lies there, the workers in ../share/sless
  std::string exe_dir;
  std::string path;  ///< PATH
  std::string home;  ///< HOME, "" if none
  /// what pip and npm may see: PIP_*, NPM_CONFIG_*, proxies, certificates
  std::map<std::string, std::string> registries;
};

/// THE LIST of drivers: which implementation stands behind each interface. Destroyed from the last
/// to the first.
struct Drivers {
  std::unique_ptr<store::ObjectStore> store;
  std::unique_ptr<artifact::ArtifactStore> artifacts;
  std::unique_ptr<invocations::LogStore> logs;
  std::unique_ptr<build::Builder> builder;
  std::unique_ptr<runtime::Runtime> runtime;
  std::vector<std::string> runtimes;  ///< languages that this host can run
};

/// The store of a data folder, beside a running server: it is not checked for damage. Errors: those
/// of store::OpenSqlite.
base::Result<std::unique_ptr<store::ObjectStore>> OpenStore(const std::string& data_dir,
                                                            const base::Clock& clock);
/// Errors: those of the factories; each says what is missing and what to do.
base::Result<Drivers> MakeDrivers(const config::Options& options, const Environment& environment,
                                  const DataDir& data, const base::Clock& clock, base::Logger& log);

}  // namespace sless::app
