#pragma once

// Memory and process limits by cgroup, where this host lets us: v2 with delegation, or v1
// hierarchies that we may write.

#include <cstdint>
#include <string>
#include <vector>

#include "client/base/log.h"
#include "client/base/result.h"

namespace sless::runtime {

/// The cgroup of one replica; empty where there is none.
struct Cgroup {
  std::vector<std::string> folders;  ///< one (v2) or one per controller (v1)
  std::string events;                ///< file with the line "oom_kill N", "" if none
  std::vector<std::string> Procs() const;
};

/// Thread safety: one thread at a time.
class Cgroups {
 public:
  /// Finds what may be used. `name` is the folder of this server's groups; what a killed server
  /// left in it is killed and removed. `self` has the files mountinfo and cgroup of this process.
  static Cgroups Detect(const std::string& name, base::Logger& log,
                        const std::string& self = "/proc/self");

  bool limits_memory() const { return memory_; }
  /// Error: kInternal, the kernel refused.
  base::Result<Cgroup> Create(const std::string& id, int64_t memory_bytes, int64_t processes) const;
  /// Kills what is left in it and removes it. False: not empty yet, try again later.
  static bool Remove(const Cgroup& cgroup);

 private:
  struct Hierarchy {
    std::string controller;  // "memory", "pids" (v1), "v2"
    std::string folder;
  };
  std::vector<Hierarchy> hierarchies_;
  bool memory_ = false;
};

/// The N of "oom_kill N" in `file`, 0 if it cannot be read.
int64_t OomKills(const std::string& file);

}  // namespace sless::runtime
