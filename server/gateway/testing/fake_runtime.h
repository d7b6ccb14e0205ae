#pragma once

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "client/base/log.h"
#include "server/http/server.h"
#include "server/runtime/runtime.h"

namespace sless::gateway {

/// A runtime whose replicas are HTTP servers of this process that answer as docs/runner.md says.
/// Fails on demand. GET /http/… answers "<revision> <path>"; the query decides more: sleep=<ms>,
/// busy=1, error=1, size=<bytes>, wedge=1 (the replica is busy from now on until it is
/// killed), stuck=1 (it drains while calls run), deaf=1 (it reads nothing of the body for 5 s).
class FakeRuntime final : public runtime::Runtime {
 public:
  FakeRuntime();
  ~FakeRuntime() override;

  base::Status Ensure(const runtime::RevisionKey& revision, const runtime::ReplicaSpec& spec,
                      int want) override;
  base::Status Retire(const runtime::RevisionKey& revision, const runtime::ReplicaSpec& spec,
                      int want, const std::string& idle_replica) override;
  std::vector<runtime::Replica> Observe(const runtime::RevisionKey& revision) const override;
  std::set<std::string> LayersInUse() const override;
  void Kill(const runtime::RevisionKey& revision, const std::string& replica_id) override;
  void OnChange(std::function<void(const runtime::RevisionKey&)> callback) override;
  void Shutdown(base::Deadline deadline) override;

  std::chrono::milliseconds start_time{20};
  std::atomic<bool> fail_start{false};   ///< replicas become kFailed, tried again in a minute
  std::atomic<bool> no_room{false};      ///< the same, for want of processes: NoResources
  std::atomic<bool> refuse{false};       ///< Ensure is kResourceExhausted
  std::atomic<bool> unreachable{false};  ///< Ensure is kUnavailable, whatever is wanted
  std::atomic<int> starts{0};
  std::atomic<int> most_at_once{0};  ///< calls of one replica, the highest ever
  std::atomic<int> cancelled{0};     ///< calls whose client went away
  std::atomic<int> calls{0};
  std::atomic<size_t> received{0};       ///< bytes of bodies under /http, also of those cut off
  std::atomic<bool> refuse_next{false};  ///< the next call is refused as Draining

  int Running(const runtime::RevisionKey& revision) const;
  /// Ends every replica of the revision at once, as a crash; they stay kFailed until `next_start`.
  void Crash(const runtime::RevisionKey& revision, std::chrono::milliseconds next_start);

 private:
  struct Node;
  void Changed(const runtime::RevisionKey& revision);
  void Start(const runtime::RevisionKey& revision, const std::shared_ptr<Node>& node,
             const runtime::ReplicaSpec& spec);
  http::Router MakeRouter(const std::shared_ptr<Node>& node, int64_t revision);

  base::NullLogger log_;
  observe::Registry metrics_;
  http::IoPool io_{1};
  mutable std::mutex mutex_;
  std::map<runtime::RevisionKey, std::vector<std::shared_ptr<Node>>> nodes_;
  std::function<void(const runtime::RevisionKey&)> callback_;
  std::vector<std::jthread> threads_;
  int next_id_ = 1;
};

}  // namespace sless::gateway
