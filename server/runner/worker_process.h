#pragma once

// One process of a language worker: started, watched, ended.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/base/result.h"
#include "client/base/spawn.h"

namespace sless::runner {

struct WorkerOptions {
  std::vector<std::string> command;
  std::vector<std::string> environment;  ///< "NAME=value"
  std::string directory;                 ///< where it starts
  int64_t data_limit_bytes = 0;          ///< RLIMIT_DATA, where no cgroup limits memory; 0: none
  int64_t process_limit = 0;  ///< RLIMIT_NPROC, counted in the sandbox's user namespace; 0: none
};

/// Thread safety: one thread at a time; that thread must live as long as the process (the kernel
/// ends the process with it).
class WorkerProcess {
 public:
  /// Errors: kResourceExhausted the machine has no process, memory or descriptor left; kInternal it
  /// cannot be started. The message has the command's first word and why.
  static base::Result<std::unique_ptr<WorkerProcess>> Start(const WorkerOptions& options);
  /// Kills what still runs and waits for it.
  ~WorkerProcess();

  /// Non-blocking ends: frames both ways, the worker's standard output and error, readiness of the
  /// process's end.
  int frames() const { return frames_; }
  int out() const { return out_; }
  int err() const { return err_; }
  int end() const { return child_.pidfd; }

  /// SIGKILL to the worker and its children that stayed in its process group.
  void Kill() { base::KillGroup(child_); }
  /// The exit, once it ended; nullopt before and after.
  std::optional<base::ExitStatus> Reap() { return base::Reap(child_); }

 private:
  WorkerProcess() = default;
  base::Child child_;
  int frames_ = -1, out_ = -1, err_ = -1;
};

}  // namespace sless::runner
