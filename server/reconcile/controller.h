#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client/base/clock.h"
#include "client/base/guarded.h"
#include "client/base/log.h"
#include "server/jobs/work_queue.h"
#include "server/reconcile/reconciler.h"
#include "server/store/object_store.h"

namespace sless::reconcile {

/// Calls reconcilers: for each change in the store, and for everything now and then, so that a lost
/// notice is no lost object. Thread safety: Add, Start and Stop from one thread, the rest from any.
class Controller {
 public:
  struct Options {
    int workers = 4;
    std::chrono::milliseconds resync{60'000};
  };
  struct Deps {
    store::ObjectStore& store;
    const base::Clock& clock;
    base::Logger& log;
  };
  Controller(Deps deps, Options options);
  ~Controller();

  /// Before Start; `reconciler` outlives the controller.
  void Add(std::string_view kind, Reconciler& reconciler);
  /// Error: the store cannot be read.
  base::Status Start();
  /// Ends after the steps that are running.
  void Stop();

  void Put(const api::ObjectKey& key) { queue_.Add(key); }
  /// True once everything that was in the store at Start has been looked at.
  bool Settled() const;
  size_t Depth() const { return queue_.Depth(); }

 private:
  void OnChange(const store::Change& change);
  base::Status PutAll(bool first);
  void Work();
  void Resync(std::stop_token stop);

  const Deps deps_;
  const Options options_;
  std::map<std::string, Reconciler*, std::less<>> reconcilers_;
  jobs::WorkQueue queue_;
  base::Guarded<std::set<api::ObjectKey>> unseen_;  // since Start
  std::unique_ptr<store::Subscription> subscription_;
  std::stop_source stop_;
  std::vector<std::jthread> threads_;
};

}  // namespace sless::reconcile
