#include "server/gateway/pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/domain/scaling.h"

namespace sless::gateway {
namespace {

// How long a call may wait for the restart of a replica that failed.
constexpr auto kPatience = std::chrono::milliseconds(1500);
constexpr int kMostRefusals = 5;  // fewer than one call tries: it may see the new one

}  // namespace

void ReplicaSlots::Refuse(base::SteadyPoint now, std::chrono::nanoseconds patience) {
  if (++refused == 1) refused_since = now;
  if (refused < kMostRefusals || now - refused_since < patience) return;
  spent = true;
  usable = false;
}

void ReplicaSlots::ResetRefusals() {
  refused = 0;
  spent = false;
}

void Pool::Update(const std::vector<runtime::Replica>& seen, base::SteadyPoint now) {
  std::map<std::string, ReplicaSlots> next;
  starting = restarts = 0;
  failure.reset();
  next_start = base::SteadyPoint::max();
  const auto ready_count = std::count_if(seen.begin(), seen.end(), [](const auto& r) {
    return r.state == runtime::ReplicaState::kReady;
  });
  const bool retired = ready_count <= want;  // perhaps another one than we asked for
  for (const auto& replica : seen) {
    restarts += replica.restarts;
    if (replica.state == runtime::ReplicaState::kStarting) ++starting;
    if (replica.state == runtime::ReplicaState::kFailed && replica.failure) {
      failure = replica.failure;
      next_start = std::min(next_start, replica.next_start);
    }
    const auto old = replicas.find(replica.id);
    ReplicaSlots slots;
    if (old != replicas.end()) slots = old->second;
    const bool ready = replica.state == runtime::ReplicaState::kReady;
    if (ready && (old == replicas.end() || !old->second.usable)) slots.last_used = now;
    if (!ready || retired) slots.retiring = false;
    if (!ready) slots.ResetRefusals();
    slots.id = replica.id;
    slots.endpoint = replica.endpoint;
    slots.usable = ready && !slots.retiring && !slots.spent && now >= slots.suspect_until;
    next.emplace(replica.id, std::move(slots));
  }
  // Replicas that are gone but still have calls keep their count until the calls end.
  for (auto& [id, slots] : replicas) {
    if (slots.in_flight > 0 && !next.contains(id)) {
      slots.usable = false;
      next.emplace(id, slots);
    }
  }
  replicas = std::move(next);
}

int Pool::Ready() const {
  return static_cast<int>(std::count_if(replicas.begin(), replicas.end(),
                                        [](const auto& r) { return r.second.usable; }));
}

ReplicaSlots* Pool::FreeReplica() {
  ReplicaSlots* best = nullptr;
  for (auto& [id, replica] : replicas) {
    if (!replica.usable || replica.in_flight >= spec.concurrency) continue;
    if (best == nullptr || replica.in_flight < best->in_flight ||
        (replica.in_flight == best->in_flight && replica.last_used > best->last_used)) {
      best = &replica;
    }
  }
  return best;
}

bool Pool::CrashLoops(base::SteadyPoint now) const {
  if (ensure_error) return true;
  return Ready() == 0 && starting == 0 && failure && next_start > now + kPatience;
}

ReplicaSlots* Pool::IdleReplica(std::chrono::nanoseconds idle, base::SteadyPoint now) {
  ReplicaSlots* oldest = nullptr;
  for (auto& [id, replica] : replicas) {
    if (!replica.usable || replica.in_flight > 0 || now - replica.last_used < idle) continue;
    if (oldest == nullptr || replica.last_used < oldest->last_used) oldest = &replica;
  }
  return oldest;
}

std::string FunctionState::Cause() const {
  if (!serving) return "";
  if (serving->ensure_error) return serving->ensure_error->message;
  if (serving->Ready() > 0 || !serving->failure) return "";
  return fmt::format("{}: {}", serving->failure->reason, serving->failure->message);
}

FunctionState::Shown FunctionState::Show() const {
  Shown now;
  now.ready = serving ? serving->Ready() : 0;
  now.restarts = serving ? serving->restarts : 0;
  now.cause = Cause();
  for (const auto& [number, pool] : pools) {
    if (pool->role == Pool::Role::kPrepared) {
      now.prepared[number] = {pool->prepare_failure.has_value(), pool->probed,
                              pool->ensure_error.has_value()};
    }
  }
  return now;
}

Load FunctionState::CurrentLoad(base::SteadyPoint now) const {
  Load load;
  load.waiting = static_cast<int>(waiters.size());
  if (!serving) return load;
  load.ready = serving->Ready();
  load.starting = serving->starting;
  load.in_flight = serving->in_flight;
  load.restarts = serving->restarts;
  load.note = Cause();
  if (!load.note.empty() && !serving->ensure_error) {
    const auto wait =
        std::chrono::ceil<std::chrono::seconds>(std::max(serving->next_start, now) - now).count();
    if (wait > 0 && wait < 86400) load.note += fmt::format("; next start in {} s", wait);
  }
  return load;
}

int FunctionState::Needed(base::SteadyPoint now) const {
  if (!serving || !route || route->switched_off) return 0;
  const auto most = std::max(route->scaling.max_replicas, route->scaling.min_replicas);
  const auto wanted = static_cast<int>(
      domain::WantedReplicas(serving->in_flight, static_cast<int64_t>(waiters.size()),
                             serving->spec.concurrency, route->scaling.min_replicas, most));
  if (waiters.empty()) return wanted;
  const auto refusing =
      std::count_if(serving->replicas.begin(), serving->replicas.end(), [&](const auto& r) {
        return (r.second.spent || now < r.second.suspect_until) && r.second.in_flight > 0;
      });
  return std::min(wanted + static_cast<int>(refusing), static_cast<int>(most));
}

}  // namespace sless::gateway
