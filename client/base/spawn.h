#pragma once

// Starting, watching and ending child processes.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/base/clock.h"
#include "client/base/result.h"

namespace sless::base {

struct SpawnOptions {
  std::vector<std::string> command;      ///< [0] is the path of the program
  std::vector<std::string> environment;  ///< "NAME=value"; nothing is inherited
  std::string directory = "/";           ///< where it starts
  std::vector<std::pair<int, int>> fds;  ///< our descriptor → its number there; 0, 1, 2 that are
                                         ///< not named: /dev/null; all else is closed
  std::vector<std::pair<int, uint64_t>> limits;  ///< RLIMIT_… → soft and hard limit
  std::vector<std::string>
      join;  ///< cgroup.procs files: it enters these cgroups before its first instruction
  bool no_new_privileges = false;
  /// It reaches no abstract unix sockets but those of its own descendants. Done by Landlock, where
  /// the kernel has it (Linux 6.12); sets no_new_privileges then.
  bool own_abstract_sockets = false;
};

/// A child, leader of a process group of its own. Plain numbers: the owner reaps it and closes
/// `pidfd`.
struct Child {
  int pid = -1;
  int pidfd = -1;  ///< readable (poll) once it ended
};

/// How a process ended.
struct ExitStatus {
  int code = 0;  ///< exit code, where signal is 0
  int signal = 0;
  bool ok() const { return code == 0 && signal == 0; }
  /// "ended with exit code 3", "was killed by signal 11 (Segmentation fault)".
  std::string Text() const;
};

/// Starts a process. It is killed when the calling THREAD ends: call from one that lives longer
/// than the process. Errors: kResourceExhausted: no process, memory or descriptor is left now
/// (ErrnoCode of fd.h); kInternal: it cannot be started. The message has the program, the step and
/// why.
Result<Child> Spawn(const SpawnOptions& options);

/// SIGKILL to the child and what stayed in its process group. Only before it was reaped.
void KillGroup(const Child& child);
/// The exit once it ended (then what is left of its group is killed and `pidfd` closed), nullopt
/// before.
std::optional<ExitStatus> Reap(Child& child);
/// Blocks until it ended.
ExitStatus WaitFor(Child& child);

struct CommandOutput {
  ExitStatus exit;
  std::string text;  ///< standard output and error together, at most 64 KiB
};
/// Runs a short command and waits for it. Errors: as Spawn; kDeadlineExceeded: it was killed.
Result<CommandOutput> RunCommand(const SpawnOptions& options, Deadline deadline,
                                 const Clock& clock);

/// The path of program `name` as a shell would find it on `path`; a name with '/' is taken as it
/// is. "" if there is none.
std::string FindProgram(const std::string& name, const std::string& path);

}  // namespace sless::base
