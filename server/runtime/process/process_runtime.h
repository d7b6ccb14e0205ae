#pragma once

// Replicas as local processes: bubblewrap → sless-runner → language worker.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/base/clock.h"
#include "client/base/log.h"
#include "client/base/result.h"
#include "server/runtime/runtime.h"

namespace sless::runtime {

/// One line of a replica's log. `line` is valid UTF-8 of at most 16 KiB.
struct ReplicaLine {
  base::TimePoint time;
  std::string stream;      ///< stdout | stderr | system
  std::string request_id;  ///< "" where a line belongs to no call
  std::string line;
};

/// An interpreter of a runtime, as found on this host.
struct Interpreter {
  std::string path;                   ///< absolute
  std::vector<std::string> prefixes;  ///< folders that it needs beside /usr, /lib* and /bin
};

struct ProcessOptions {
  std::string state_dir;     ///< a folder of this runtime alone; made if missing (0700)
  std::string runner;        ///< path of sless-runner
  std::string runtimes_dir;  ///< has <runtime>/worker.*
  /// Where to look for an interpreter, by runtime; a name without '/' is looked for on `path`. The
  /// first of the right version wins.
  std::map<std::string, std::vector<std::string>> interpreters = {
      {"python3.11", {"/usr/bin/python3.11", "/usr/local/bin/python3.11", "python3.11"}},
      {"nodejs20", {"node", "nodejs", "/usr/local/bin/node", "/usr/bin/node"}},
  };
  std::map<std::string, Interpreter>
      found;  ///< by runtime: what FindInterpreter found already; others are looked for when needed
  std::string path =
      "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";  ///< the server's PATH
  std::string bwrap = "bwrap";
  bool sandbox = true;                      ///< false: --insecure-no-sandbox
  std::chrono::milliseconds grace{25'000};  ///< from drain to SIGKILL
  std::chrono::milliseconds start_deadline{60'000};
  std::chrono::milliseconds first_backoff{1'000};
  std::chrono::milliseconds max_backoff{60'000};
};

/// Takes the log lines of replicas. Called from the runtime's thread; must not block.
struct LogSink {
  std::function<void(const RevisionKey& revision, const std::string& replica_id,
                     const ReplicaLine& line)>
      line;
  /// True: no more lines are read for a moment, so that a function that prints faster than they can
  /// be kept waits in its print. Null: never.
  std::function<bool()> behind;
};

/// Tries whether a sandbox can be made, removes what a killed server left in `state_dir`. A runtime
/// whose interpreter is missing is no error here: Ensure refuses its functions and names the paths
/// tried. `clock` and `log` outlive the runtime. Errors: kFailedPrecondition no sandbox can be made
/// (message says what is missing and names --insecure-no-sandbox), or the runner or a worker is not
/// where the options say; kInternal the state folder cannot be used.
base::Result<std::unique_ptr<Runtime>> MakeProcessRuntime(ProcessOptions options,
                                                          const base::Clock& clock,
                                                          base::Logger& log, LogSink sink);

/// Finds and verifies (by running it) the interpreter of `runtime`.
/// Error: kInvalidArgument, field /spec/runtime: none of the right version; message lists the paths
/// tried and what was found.
base::Result<Interpreter> FindInterpreter(const ProcessOptions& options,
                                          const std::string& runtime);

}  // namespace sless::runtime
