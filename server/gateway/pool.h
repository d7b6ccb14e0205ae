#pragma once

// The state of one function in the gateway: its revisions with their replicas, slots and waiters.
// Plain data and rules; the activator adds locking, waiting and the calls to the runtime.

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client/base/clock.h"
#include "server/gateway/serving.h"

namespace sless::http {
class Signal;
}

namespace sless::gateway {

struct ReplicaSlots {
  std::string id;
  std::string endpoint;
  bool usable = false;  ///< ready, and not being retired
  bool retiring = false;
  int in_flight = 0;
  base::SteadyPoint last_used;
  base::SteadyPoint suspect_until;  ///< refused a call: not used before, whatever the runtime says
  int refused = 0;                  ///< calls in a row that it did not take
  base::SteadyPoint refused_since;

  /// It has taken no call for so long and so often that it will not come round by itself: it gets
  /// no more of them, and once those that it has are through it is useless.
  bool spent = false;

  /// A call was not taken. `patience`: how long that must go on.
  void Refuse(base::SteadyPoint now, std::chrono::nanoseconds patience);
  void ResetRefusals();
  bool Useless() const { return spent && in_flight == 0; }
};

/// The replicas of one revision.
struct Pool {
  enum class Role { kPrepared, kServing, kDraining };

  runtime::RevisionKey key;
  runtime::ReplicaSpec spec;
  Role role = Role::kPrepared;
  std::map<std::string, ReplicaSlots> replicas;
  int in_flight = 0;
  int want = 0;  ///< as the runtime was last told
  int prepare_want = 0;
  int starting = 0;
  int restarts = 0;
  std::optional<api::Failure> failure;  ///< of a replica that is not running now
  base::SteadyPoint next_start;         ///< of that replica
  std::optional<base::Error> ensure_error;
  base::SteadyPoint ensure_retry;  ///< when the runtime is asked again after ensure_error
  bool probing = false;
  bool probed = false;  ///< a replica answered /healthz
  std::optional<api::Failure> prepare_failure;
  base::SteadyPoint last_demand;
  base::SteadyPoint drain_until = base::SteadyPoint::max();

  /// Takes over what the runtime sees. New replicas count as used now.
  void Update(const std::vector<runtime::Replica>& seen, base::SteadyPoint now);
  int Ready() const;
  /// The usable replica with the least calls that has a free slot; of equals the one used last, so
  /// that others become idle. Null: none.
  ReplicaSlots* FreeReplica();
  /// Nothing runs or starts, and the next try is further away than a call should wait.
  bool CrashLoops(base::SteadyPoint now) const;
  /// The replica longest idle, where it has been so for `idle`. Null: none.
  ReplicaSlots* IdleReplica(std::chrono::nanoseconds idle, base::SteadyPoint now);
};

struct Waiter {
  std::shared_ptr<http::Signal> signal;
  bool done = false;
  std::shared_ptr<Pool> pool;  ///< granted: whose slot it is
  std::string replica;
  std::string endpoint;
  std::optional<base::Error> error;
};

struct FunctionState {
  std::string ns;
  std::string name;
  std::atomic<size_t> buffered{0};             ///< bytes of its calls' bodies, see CallBody
  std::mutex mutex;                            ///< guards all below
  std::shared_ptr<const FunctionRoute> route;  ///< null until published
  std::shared_ptr<Pool> serving;               ///< null: no revision
  std::map<int64_t, std::shared_ptr<Pool>> pools;
  std::deque<std::shared_ptr<Waiter>> waiters;
  bool removed = false;
  /// What the reconciler looks at, as OnChange told it last.
  struct Shown {
    int ready = 0;
    int restarts = 0;
    std::string cause;
    struct Prepared {
      bool failed, probed, refused;
      bool operator==(const Prepared&) const = default;
    };
    std::map<int64_t, Prepared> prepared;  ///< by revision
    bool operator==(const Shown&) const = default;
  };
  Shown shown;

  std::string Id() const { return ns + "/" + name; }
  /// Counts something of the function, but not of one that is gone: its metrics are gone too.
  template <class F>
  void Measure(F&& count) {
    std::lock_guard lock(mutex);
    if (!removed) count();
  }
  /// Calls wait for a place.
  bool Waited() {
    std::lock_guard lock(mutex);
    return !waiters.empty();
  }
  Load CurrentLoad(base::SteadyPoint now) const;
  Shown Show() const;
  /// "" or why no replica is ready although wanted.
  std::string Cause() const;
  /// Replicas that the load asks for, within scaling. One that refuses calls while it runs others
  /// (its process is being replaced) has no room for those that wait.
  int Needed(base::SteadyPoint now) const;
};

}  // namespace sless::gateway
