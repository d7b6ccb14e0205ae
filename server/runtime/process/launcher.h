#pragma once

// Starts the processes of one replica: bwrap → sless-runner → worker, with its socket, its log pipe
// and its cgroup.

#include <map>
#include <string>

#include "client/base/spawn.h"
#include "server/runtime/process/cgroups.h"
#include "server/runtime/process/process_runtime.h"

namespace sless::runtime {

/// A started replica. The owner closes the descriptors, reaps the child and removes the cgroup.
struct Launched {
  base::Child child;
  int control = -1;  ///< closing it makes the runner drain
  int log = -1;      ///< non-blocking; the runner's log lines
  Cgroup cgroup;
};

/// Thread safety: one thread at a time; children die with that thread.
class Launcher {
 public:
  Launcher(const ProcessOptions& options, Cgroups cgroups, std::string socket_dir,
           std::string bwrap);

  std::string SocketPath(const std::string& id) const { return socket_dir_ + "/" + id; }
  /// Errors: kResourceExhausted no process, memory or descriptor is left: nobody's fault, goes
  /// later; kInternal what else could not be done.
  base::Result<Launched> Launch(const RevisionKey& key, const ReplicaSpec& spec,
                                const std::string& id, const Interpreter& interpreter);
  /// Removes the socket and folder of a replica that has ended.
  void Forget(const std::string& id);

 private:
  base::Result<std::string> CodeFolder(const ReplicaSpec& spec, const std::string& id);
  std::vector<std::string> RunnerFlags(const RevisionKey& key, const ReplicaSpec& spec,
                                       const Interpreter& interpreter, const std::string& code,
                                       bool has_oom_file) const;

  const ProcessOptions& options_;
  Cgroups cgroups_;
  std::string socket_dir_;
  std::string bwrap_;
  int64_t launches_ =
      0;  ///< the cgroup of a replica's last process may not be gone when its next one starts
};

}  // namespace sless::runtime
