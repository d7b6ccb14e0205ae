#pragma once

// What a process of a user sees of the host: the command line of bubblewrap. For replicas and for
// builds.

#include <string>
#include <utility>
#include <vector>

#include "client/base/clock.h"
#include "client/base/result.h"
#include "client/base/spawn.h"

namespace sless::sandbox {

/// Always there: /usr, /lib*, /bin, the little of /etc that programs need, /proc of the sandbox's
/// own processes, a minimal /dev, a private /tmp; the host's network. All namespaces but that of
/// the network are its own, no capability is left.
struct Sandbox {
  std::vector<std::string>
      read_only;  ///< more host paths, shown at the same place; absent ones are left out
  std::vector<std::pair<std::string, std::string>> writable;  ///< host path → place
  std::vector<std::pair<std::string, std::string>>
      binds;  ///< host path → place, read-only; may lie in a writable one
  int64_t tmp_bytes = 512ll * 1024 * 1024;  ///< size limit of /tmp and of /dev/shm
  std::string directory = "/tmp";           ///< where the program starts
  std::string etc_dir;                      ///< of WriteEtc
};

/// bwrap's options; "--" and the command follow them.
std::vector<std::string> Arguments(const Sandbox& sandbox);

/// Whether every sandbox shows this host path.
bool AlwaysThere(const std::string& path);

/// For the process that becomes a sandbox (`spawn.command` begins with bwrap): keeps it from the
/// abstract unix sockets of the host and of other sandboxes, which lie in the shared network
/// namespace. Does nothing where the kernel cannot (before Linux 6.12) or bwrap is setuid.
void KeepToOwnSockets(base::SpawnOptions& spawn);

/// Writes a made-up passwd and group into `dir` (made if missing). Error: kInternal.
base::Status WriteEtc(const std::string& dir);

/// Tries once whether this machine can make a sandbox. `bwrap` is the path of the program, "" where
/// it was not found. Error: kFailedPrecondition: says what is missing and names
/// --insecure-no-sandbox.
base::Status Probe(const std::string& bwrap, const std::string& etc_dir, const base::Clock& clock);

}  // namespace sless::sandbox
