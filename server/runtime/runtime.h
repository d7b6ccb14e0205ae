#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/api/object.h"
#include "client/base/clock.h"
#include "client/base/result.h"

namespace sless::runtime {

/// One immutable, numbered revision of a function: code + configuration.
struct RevisionKey {
  std::string ns;
  std::string name;
  int64_t revision = 0;
  auto operator<=>(const RevisionKey&) const = default;
  bool operator==(const RevisionKey&) const = default;
  std::string ToString() const { return ns + "/" + name + "@" + std::to_string(revision); }
};

/// What a replica of a revision runs.
struct ReplicaSpec {
  std::string runtime;     ///< python3.11 | nodejs20
  std::string entrypoint;  ///< file.function
  std::string code_dir;    ///< read-only code layer
  std::string deps_dir;    ///< read-only dependency layer, "" if none
  std::map<std::string, std::string> environment;
  int64_t memory_mb = 256;
  int64_t timeout_sec = 60;
  int64_t concurrency = 1;
  bool operator==(const ReplicaSpec&) const = default;
};

enum class ReplicaState { kStarting, kReady, kFailed, kStopping };

struct Replica {
  std::string id;  ///< unique over all revisions and restarts of the server
  ReplicaState state = ReplicaState::kStarting;
  /// "unix:/path" or "host:port", where its runner takes HTTP; set once started
  std::string endpoint;
  std::optional<api::Failure>
      failure;  ///< kFailed: why it did not start or died, with file, line and log tail
  int restarts = 0;
  base::SteadyPoint next_start;  ///< kFailed: when it is started again (backoff)
};

/// Runs the replicas of functions on one platform (local processes, a cluster).
///
/// Thread safety: all methods may be called at the same time from any thread.
/// All methods are idempotent: repeating a call with the same arguments changes nothing. None waits
/// for a start or a drain.
class Runtime {
 public:
  virtual ~Runtime() = default;

  /// Brings `revision` to `want` replicas (0 to 1000): starts missing ones, drains and stops what
  /// is too many. Replicas that die are started again with backoff until `want` falls. Errors:
  /// kInvalidArgument   this platform cannot run the spec; `field` says which part;
  ///         kResourceExhausted no room now; retry after a change, not in a loop;
  ///         kUnavailable       platform not reachable; retry with backoff.
  virtual base::Status Ensure(const RevisionKey& revision, const ReplicaSpec& spec, int want) = 0;

  /// Ensure for one replica less, where the caller knows which one has nothing to do:
  /// `idle_replica` is the one to drain and stop. A runtime that cannot choose stops any.
  virtual base::Status Retire(const RevisionKey& revision, const ReplicaSpec& spec, int want,
                              [[maybe_unused]] const std::string& idle_replica) {
    return Ensure(revision, spec, want);
  }

  /// The replicas of `revision` now; empty for a revision that is not known.
  virtual std::vector<Replica> Observe(const RevisionKey& revision) const = 0;

  /// Folders of the layers that replicas use, of whatever revision: also those that drain.
  virtual std::set<std::string> LayersInUse() const = 0;

  /// Kills one replica and starts it again at once: it is ready to the eye, but takes no calls.
  virtual void Kill(const RevisionKey& revision, const std::string& replica_id) = 0;

  /// Calls `callback` whenever a replica of some revision changes state. From the runtime's
  /// threads; must not block. One callback for the whole life of the runtime, set before the first
  /// Ensure.
  virtual void OnChange(std::function<void(const RevisionKey&)> callback) = 0;

  /// Drains and stops everything, at most until `deadline`, then kills. After it nothing of ours
  /// runs.
  virtual void Shutdown(base::Deadline deadline) = 0;
};

}  // namespace sless::runtime
