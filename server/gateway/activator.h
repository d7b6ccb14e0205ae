#pragma once

// Slots on ready replicas, waiting for them, and how many replicas run. Include in .cc files only
// (coroutines).

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <thread>

#include "server/gateway/gateway.h"
#include "server/gateway/pool.h"
#include "server/http/stream.h"
#include "server/http/upstream.h"

namespace sless::gateway {

class Activator;

/// What a call says about its replica, see Slot.
enum class Verdict { kNone, kServed, kRefused, kSuspect };

/// One call's place on one replica; given back when it ends. Move-only.
class Slot {
 public:
  Slot() = default;
  Slot(Activator* owner, std::shared_ptr<FunctionState> function, std::shared_ptr<Pool> pool,
       std::string replica, std::string endpoint)
      : owner_(owner),
        function_(std::move(function)),
        pool_(std::move(pool)),
        replica_(std::move(replica)),
        endpoint_(std::move(endpoint)) {}
  Slot(Slot&& other) noexcept { *this = std::move(other); }
  Slot& operator=(Slot&& other) noexcept;
  ~Slot() { Release(); }

  /// Without a word about the replica: the caller has gone.
  void Release() { Release(Verdict::kNone); }
  /// The replica took the call.
  void Served() { Release(Verdict::kServed); }
  /// It did not, or did not answer; the next call may have more luck.
  void Refused() { Release(Verdict::kRefused); }
  /// The replica takes no calls any more (refused, drains, died): none is sent to it until the
  /// runtime says that it is ready again.
  void Suspect() { Release(Verdict::kSuspect); }
  const std::string& endpoint() const { return endpoint_; }
  int64_t revision() const { return pool_->key.revision; }
  const runtime::ReplicaSpec& spec() const { return pool_->spec; }

 private:
  void Release(Verdict verdict);

  Activator* owner_ = nullptr;
  std::shared_ptr<FunctionState> function_;
  std::shared_ptr<Pool> pool_;
  std::string replica_;
  std::string endpoint_;
};

/// Thread safety: all methods from any thread. One thread of its own, the keeper, makes every call
/// to the runtime; nothing is locked while it does.
class Activator {
 public:
  struct Deps {
    http::IoPool& io;
    http::Upstream& upstream;
    runtime::Runtime& runtime;
    observe::Registry& metrics;
    const base::Clock& clock;
    base::Logger& log;
    const GatewayOptions& options;
  };
  explicit Activator(Deps deps);
  ~Activator();

  // Serving, see serving.h.
  base::Result<Prepared> Prepare(const runtime::RevisionKey& revision,
                                 const runtime::ReplicaSpec& spec, const Scaling& scaling);
  void Abandon(const runtime::RevisionKey& revision);
  void Publish(FunctionRoute route);
  void Remove(const std::string& ns, const std::string& name);
  Load Observe(const std::string& ns, const std::string& name) const;
  void OnChange(std::function<void(const std::string&, const std::string&)> callback);

  /// Null: not published. One atomic load, no lock.
  std::shared_ptr<FunctionState> Find(std::string_view ns, std::string_view name) const;
  /// The published route of a function; null where it was removed.
  static std::shared_ptr<const FunctionRoute> Route(FunctionState& function);

  /// A slot of the revision that serves now. Waits in order of arrival, at most
  /// min(max(timeout_sec, 10), 60) seconds. Errors: kNotFound removed; kCancelled `gone`;
  /// kUnavailable with reason SwitchedOff, NotReady, TooManyWaiting, ColdStartTimeout, Saturated,
  /// Stopping, or that of the replica's failure. Anybody may read a message up to its first ": ";
  /// what follows may name parts of the server or of the function's code.
  http::Task<base::Result<Slot>> Acquire(boost::asio::any_io_executor executor,
                                         std::shared_ptr<FunctionState> function,
                                         std::stop_token gone);
  void Restored() { restoring_ = false; }
  bool restoring() const { return restoring_; }
  void Stop();

 private:
  friend class Slot;
  using Key = std::pair<std::string, std::string>;
  using Table = std::map<Key, std::shared_ptr<FunctionState>, std::less<>>;
  struct Order {
    std::shared_ptr<Pool> pool;
    runtime::RevisionKey key;
    runtime::ReplicaSpec spec;
    int want = 0;
    std::string retire;  ///< id of an idle replica, "" if none
  };

  std::shared_ptr<FunctionState> Edit(const std::string& ns, const std::string& name, bool create);
  void Poke(const Key& key) { desk_->Poke(key); }
  void StopRevision(const runtime::RevisionKey& key, const runtime::ReplicaSpec& spec);
  void Keep(std::stop_token stop);
  void StopLeavers();
  base::SteadyPoint Step(const std::shared_ptr<FunctionState>& function);
  std::vector<Order> Plan(const std::shared_ptr<FunctionState>& function, base::SteadyPoint now,
                          base::SteadyPoint& due);
  static int PlanServing(FunctionState& function, base::SteadyPoint now, base::SteadyPoint& due,
                         std::string& retire);
  void Carry(FunctionState& function, const Order& order);
  void StartProbe(std::shared_ptr<FunctionState> function, std::shared_ptr<Pool> pool,
                  std::string endpoint);
  static http::Task<bool> Probe(std::unique_ptr<http::UpstreamCall> call);
  void Tell(FunctionState& function);
  void Grant(FunctionState& function);
  void FailWaiters(FunctionState& function, const base::Error& error);
  std::optional<base::Error> WhyNot(const FunctionState& function, base::SteadyPoint now) const;
  base::Error TimeoutError(const FunctionState& function) const;
  static bool TakeSlot(FunctionState& function, Waiter& waiter, base::SteadyPoint now);
  void Release(FunctionState& function, Pool& pool, const std::string& replica, Verdict verdict);
  void KillUseless(FunctionState& function);

  Deps deps_;
  std::atomic<std::shared_ptr<const Table>> table_;  ///< published and prepared functions
  std::mutex edit_;                                  ///< one writer of table_ at a time
  std::mutex callback_mutex_;
  std::function<void(const std::string&, const std::string&)> callback_;
  std::atomic<bool> restoring_{false};
  std::atomic<bool> stopping_{false};

  // What the keeper has to do. Shared, because probes may end after the activator did.
  struct Desk {
    std::mutex mutex;
    std::condition_variable wake;
    std::map<Key, base::SteadyPoint> due;
    std::deque<std::pair<runtime::RevisionKey, runtime::ReplicaSpec>> leavers;
    void Poke(const Key& key);
  };
  const std::shared_ptr<Desk> desk_ = std::make_shared<Desk>();
  std::jthread keeper_;
};

}  // namespace sless::gateway
