#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <utility>

#include "client/api/object.h"
#include "client/base/clock.h"

namespace sless::jobs {

/// Keys of objects that want to be looked at. A key is in it at most once, whoever adds it how
/// often, and it is never handed to two workers at once: added while a worker has it, it comes
/// again after that worker's Done.
///
/// Thread safety: all methods may be called from any thread.
class WorkQueue {
 public:
  struct BackoffOptions {
    std::chrono::milliseconds first{100};
    std::chrono::milliseconds max{30'000};
  };
  WorkQueue(const base::Clock& clock, BackoffOptions backoff) : clock_(clock), backoff_(backoff) {}
  explicit WorkQueue(const base::Clock& clock) : WorkQueue(clock, BackoffOptions()) {}

  /// Due at once.
  void Add(const api::ObjectKey& key) { AddAfter(key, std::chrono::milliseconds(0)); }
  /// Due after `wait`; of several times for one key the earliest counts.
  void AddAfter(const api::ObjectKey& key, std::chrono::milliseconds wait);
  /// Due after the key's next backoff; Forget starts its backoff anew.
  void Retry(const api::ObjectKey& key);
  void Forget(const api::ObjectKey& key);

  /// Blocks until a key is due, hands it out; empty once `stop` is requested.
  std::optional<api::ObjectKey> Take(std::stop_token stop);
  /// The worker that took `key` is done with it.
  void Done(const api::ObjectKey& key);

  /// Keys that wait or are being worked on.
  size_t Depth() const;

 private:
  void Put(const api::ObjectKey& key, base::SteadyPoint due);  // under the lock

  const base::Clock& clock_;
  const BackoffOptions backoff_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::set<std::pair<base::SteadyPoint, api::ObjectKey>> order_;  // what waits, earliest first
  std::map<api::ObjectKey, base::SteadyPoint> due_;               // the same by key
  std::set<api::ObjectKey> running_;
  std::map<api::ObjectKey, base::SteadyPoint> again_;  // added while running
  std::map<api::ObjectKey, int> failures_;
};

}  // namespace sless::jobs
