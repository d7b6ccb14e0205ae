#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client/api/job.h"
#include "client/base/backoff.h"
#include "client/base/clock.h"
#include "client/base/guarded.h"
#include "client/base/log.h"
#include "server/gateway/invoker.h"
#include "server/jobs/run_state.h"
#include "server/jobs/work_queue.h"
#include "server/observe/metrics.h"
#include "server/store/object_store.h"

namespace sless::jobs {

/// Carries out the Run objects of the store: lease, call, record; again while attempts are left.
///
/// A run whose function is still being built waits as Pending and holds no thread. One whose
/// function does not exist, failed or is switched off fails at once. The end of a Run object ends
/// its call; a run that shall end (AskToEnd, then Cancel) is Failed once its call has ended.
///
/// Fairness: a function begins one more run only while it has fewer running than there are free
/// workers, so one alone gets half of them, the next half of the rest, and runs that hang never
/// keep those of other functions from beginning. The others wait as Pending and hold no thread.
/// Thread safety: Start and Stop from one thread, the rest from any.
class RunWorker {
 public:
  struct Options {
    int workers = 32;                             ///< runs at once
    std::string instance;                         ///< id of this process, never used before
    std::chrono::seconds not_ready_limit{600};    ///< a run waits at most so long for its function
    std::chrono::milliseconds retry_first{1000};  ///< wait before the second attempt; doubles
    std::chrono::milliseconds retry_max{30'000};
    std::chrono::milliseconds poll{
        1000};  ///< how often a waiting run looks again, if nothing wakes it
    /// So long after the start of this server the calls of one that died before have ended:
    /// replicas end what they run once its connections are closed.
    std::chrono::milliseconds settle{1000};
    /// Longest wait between two tries to write the end of a run.
    std::chrono::milliseconds record_max{5000};
  };
  struct Deps {
    store::ObjectStore& store;
    gateway::Invoker& invoker;
    const base::Clock& clock;
    base::Logger& log;
    observe::Registry& metrics;
  };
  RunWorker(Deps deps, Options options);
  ~RunWorker();

  /// Takes up what the store holds and all that comes. Error: the store cannot be read.
  base::Status Start();
  /// Begins nothing more, waits for running calls until `deadline`, then ends them (their attempts
  /// count as Interrupted) without waiting for that.
  void Stop(base::Deadline deadline);

  /// Ends the call of this run, if it is running. Its object is the caller's business: AskToEnd
  /// comes first, so that a call that begins meanwhile is not missed.
  void Cancel(const api::ObjectKey& run);

  /// Runs that wait or run.
  size_t Depth() const { return queue_.Depth(); }
  size_t Running() const;

 private:
  struct Waits {
    std::map<std::string, std::set<api::ObjectKey>>
        by_cause;  // "Function ns/name" or the like → runs that wait for it
    std::map<api::ObjectKey, base::SteadyPoint> since;
    std::map<api::ObjectKey, base::SteadyPoint> not_before;  // after a call that did not begin
  };

  // Runs that have a place: from before their lease to the record of their end.
  struct Places {
    std::map<api::ObjectKey, std::stop_source> taken;
    std::map<std::string, int> by_function;                   // "ns/name" → how many of them
    std::map<std::string, std::set<api::ObjectKey>> waiting;  // "ns/name" → runs that found none
    bool closed = false;                                      // Stop: none is given any more
  };

  void OnChange(const store::Change& change);
  void Work();
  void Process(const api::ObjectKey& key);
  /// Writes the end of a run that nothing runs any more.
  void ProcessEnd(const api::ObjectKey& key, RunStep step);
  void ProcessStart(const api::ObjectKey& key, api::Run run);
  /// Why `run` cannot begin now: a failure that ends it, or a cause to wait for. Neither: go.
  struct Obstacle {
    std::optional<api::Failure> failure;
    std::string wait_for;
    std::string message;
  };
  base::Result<Obstacle> FindObstacle(const api::Run& run) const;
  void WaitFor(const api::ObjectKey& key, api::Run run, const Obstacle& obstacle);
  void Wake(const std::string& cause);
  void ForgetWaits(const api::ObjectKey& key);
  /// A worker for a run of `function`; else it waits for its turn.
  bool TakePlace(const api::ObjectKey& key, const std::string& function, std::stop_source source);
  void LeavePlace(const api::ObjectKey& key, const std::string& function);
  void Begin(const api::ObjectKey& key, api::Run run);
  void Call(const api::ObjectKey& key, const api::Run& run, std::stop_token stop);
  /// Writes `run` over what it was read from; empty where that failed and was queued again, or the
  /// run is gone.
  std::optional<api::Run> Lease(const api::ObjectKey& key, const api::Run& run);
  /// An attempt has ended, as `run` says: counts it and tells who waits for it.
  void Tell(const api::ObjectKey& key, const api::Run& run);
  void Record(const api::ObjectKey& key, const api::Run& leased,
              const base::Result<gateway::EventResult>& outcome);
  /// Waits before the next try of Record. False: no more of them.
  bool AwaitRecord(base::Backoff& backoff, int& last_tries);

  const Deps deps_;
  const Options options_;
  WorkQueue queue_;
  base::Guarded<Waits> waits_;
  base::Guarded<Places> places_;
  std::unique_ptr<store::Subscription> subscription_;
  base::SteadyPoint began_;
  std::stop_source stop_;
  std::stop_source give_up_;  // of all calls, at a stop
  std::vector<std::jthread> threads_;
};

}  // namespace sless::jobs
