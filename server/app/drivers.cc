#include "server/app/drivers.h"

#include "client/api/function.h"
#include "server/artifact/filesystem/filesystem_store.h"
#include "server/build/process/process_builder.h"
#include "server/invocations/file_log_store.h"
#include "server/runtime/process/process_runtime.h"
#include "server/store/sqlite/sqlite_store.h"

namespace sless::app {

base::Result<std::unique_ptr<store::ObjectStore>> OpenStore(const std::string& data_dir,
                                                            const base::Clock& clock) {
  return store::OpenSqlite(data_dir + "/" + std::string(kStoreFile), clock, store::Check::kNone);
}

base::Result<Drivers> MakeDrivers(const config::Options& options, const Environment& environment,
                                  const DataDir& data, const base::Clock& clock,
                                  base::Logger& log) {
  Drivers drivers;
  ASSIGN_OR_RETURN(drivers.store, store::OpenSqlite(data.Path(kStoreFile), clock));
  ASSIGN_OR_RETURN(drivers.artifacts, artifact::OpenFilesystemStore(data.Path("artifacts")));
  drivers.logs = invocations::MakeFileLogStore(data.Path("logs"), clock, log);

  build::ProcessBuilderOptions build;
  build.dir = data.Path("layers");
  build.sandbox = !options.insecure_no_sandbox;
  build.path = environment.path;
  build.environment = environment.registries;
  build.home = environment.home;
  if (!options.runtime_python.empty()) build.pythons = {options.runtime_python};
  if (!options.runtime_node.empty()) build.node = options.runtime_node;

  runtime::ProcessOptions process;
  process.state_dir = data.Path("run");
  process.runner = environment.exe_dir + "/sless-runner";
  process.runtimes_dir = environment.exe_dir + "/../share/sless/runtimes";
  process.path = environment.path;
  process.sandbox = !options.insecure_no_sandbox;
  process.grace = std::chrono::seconds(options.shutdown_grace_sec);
  if (!options.runtime_python.empty())
    process.interpreters["python3.11"] = {options.runtime_python};
  if (!options.runtime_node.empty()) process.interpreters["nodejs20"] = {options.runtime_node};
  for (const auto runtime : {api::kRuntimePython, api::kRuntimeNode}) {
    const auto interpreter = runtime::FindInterpreter(process, std::string(runtime));
    if (interpreter) {
      process.found[std::string(runtime)] = *interpreter;
      drivers.runtimes.emplace_back(runtime);
      log.Info("runtime found", {{"runtime", runtime}, {"interpreter", interpreter->path}});
    } else {
      log.Warn("runtime not found, its functions will be refused",
               {{"runtime", runtime}, {"error", interpreter.error().message}});
    }
  }
  auto* logs = drivers.logs.get();
  const runtime::LogSink sink{[logs](const runtime::RevisionKey& revision,
                                     const std::string& replica, const runtime::ReplicaLine& line) {
                                logs->Append(revision.ns, revision.name,
                                             {line.time, revision.revision, replica, line.stream,
                                              line.request_id, line.line});
                              },
                              [logs] { return logs->Behind(); }};
  // First: it is the one that knows whether a sandbox can be made.
  ASSIGN_OR_RETURN(drivers.runtime, runtime::MakeProcessRuntime(process, clock, log, sink));
  ASSIGN_OR_RETURN(drivers.builder, build::MakeProcessBuilder(build, clock, log));
  return drivers;
}

}  // namespace sless::app
