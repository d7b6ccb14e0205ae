// The activator's keeper: one thread that compares what the load asks for with what runs, and tells
// the runtime.

#include <boost/asio/co_spawn.hpp>

#include "server/gateway/activator.h"
#include "server/http/signal.h"

namespace sless::gateway {
namespace {

constexpr auto kRecheck = std::chrono::milliseconds(200);
constexpr auto kEnsureRetry = std::chrono::seconds(1);
constexpr auto kLeastFailureIdle = std::chrono::seconds(5);

}  // namespace

void Activator::Desk::Poke(const Key& key) {
  {
    std::lock_guard lock(mutex);
    due[key] = base::SteadyPoint::min();
  }
  wake.notify_all();
}

void Activator::StopRevision(const runtime::RevisionKey& key, const runtime::ReplicaSpec& spec) {
  {
    std::lock_guard lock(desk_->mutex);
    desk_->leavers.emplace_back(key, spec);
  }
  desk_->wake.notify_all();
}

void Activator::Keep(std::stop_token stop) {
  std::unique_lock lock(desk_->mutex);
  auto& due = desk_->due;
  while (!stop.stop_requested()) {
    const auto now = deps_.clock.Steady();
    const auto next = std::min_element(
        due.begin(), due.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (desk_->leavers.empty() && (next == due.end() || next->second > now)) {
      const auto wait = next == due.end() ? std::chrono::nanoseconds(std::chrono::seconds(1))
                                          : std::chrono::nanoseconds(next->second - now);
      desk_->wake.wait_for(lock, std::min<std::chrono::nanoseconds>(wait, std::chrono::seconds(1)));
      continue;
    }
    if (!desk_->leavers.empty()) {
      // Before any step, so that a revision of the same number made later is not the one that is
      // stopped.
      lock.unlock();
      StopLeavers();
      lock.lock();
      continue;
    }
    const auto key = next->first;
    due.erase(next);
    lock.unlock();
    const auto function = Find(key.first, key.second);
    const auto again = function ? Step(function) : base::SteadyPoint::max();
    lock.lock();
    if (again != base::SteadyPoint::max()) due.emplace(key, again);  // a poke in between stays
  }
}

void Activator::StopLeavers() {
  std::deque<std::pair<runtime::RevisionKey, runtime::ReplicaSpec>> leavers;
  {
    std::lock_guard lock(desk_->mutex);
    leavers.swap(desk_->leavers);
  }
  for (const auto& [key, spec] : leavers) {
    if (const auto status = deps_.runtime.Ensure(key, spec, 0); !status) {
      deps_.log.Warn("cannot stop a revision",
                     {{"revision", key.ToString()}, {"error", base::ToString(status.error())}});
    }
  }
}

base::SteadyPoint Activator::Step(const std::shared_ptr<FunctionState>& function) {
  std::vector<std::shared_ptr<Pool>> pools;
  {
    std::lock_guard lock(function->mutex);
    for (const auto& [number, pool] : function->pools) pools.push_back(pool);
  }
  std::vector<std::vector<runtime::Replica>> seen;
  for (const auto& pool : pools) seen.push_back(deps_.runtime.Observe(pool->key));

  KillUseless(*function);
  auto due = base::SteadyPoint::max();
  std::vector<Order> orders;
  {
    std::lock_guard lock(function->mutex);
    const auto now = deps_.clock.Steady();
    for (size_t i = 0; i < pools.size(); ++i) {
      auto& pool = *pools[i];
      pool.Update(seen[i], now);
      if (pool.ensure_error && now >= pool.ensure_retry) pool.ensure_error.reset();
      for (const auto& [id, replica] : pool.replicas) {
        if (replica.suspect_until > now) due = std::min(due, replica.suspect_until);
      }
      // Before it serves, the first failure is final.
      if (pool.role == Pool::Role::kPrepared && pool.failure && pool.Ready() == 0 &&
          !pool.prepare_failure) {
        pool.prepare_failure = pool.failure;
      }
    }
    Grant(*function);
    if (!function->waiters.empty()) {
      if (const auto why = WhyNot(*function, now)) FailWaiters(*function, *why);
    }
    orders = Plan(function, now, due);
  }
  for (const auto& order : orders) Carry(*function, order);
  Tell(*function);
  return due;
}

// The runner ends its calls and replaces its worker by itself; this is for the one that does
// neither, whatever the reason: it would refuse calls for ever and look healthy.
void Activator::KillUseless(FunctionState& function) {
  std::vector<std::pair<runtime::RevisionKey, std::string>> useless;
  {
    std::lock_guard lock(function.mutex);
    for (const auto& [number, pool] : function.pools) {
      for (auto& [id, replica] : pool->replicas) {
        if (!replica.Useless()) continue;
        replica.ResetRefusals();
        useless.emplace_back(pool->key, id);
      }
    }
  }
  for (const auto& [key, id] : useless) {
    deps_.log.Warn("a replica that runs nothing refuses every call and is replaced",
                   {{"revision", key.ToString()}, {"replica", id}});
    deps_.runtime.Kill(key, id);
  }
}

std::vector<Activator::Order> Activator::Plan(const std::shared_ptr<FunctionState>& function,
                                              base::SteadyPoint now, base::SteadyPoint& due) {
  std::vector<Order> orders;
  for (auto it = function->pools.begin(); it != function->pools.end();) {
    const auto pool = it->second;
    Order order{pool, pool->key, pool->spec, pool->want, ""};
    if (pool->role == Pool::Role::kServing) {
      order.want = PlanServing(*function, now, due, order.retire);
    } else if (pool->role == Pool::Role::kPrepared) {
      order.want = pool->prepare_failure ? 0 : pool->prepare_want;
      if (!pool->prepare_failure && !pool->probed) {
        due = std::min(due, now + kRecheck);
        const auto ready = std::find_if(pool->replicas.begin(), pool->replicas.end(),
                                        [](const auto& r) { return r.second.usable; });
        if (ready != pool->replicas.end() && !pool->probing) {
          pool->probing = true;
          StartProbe(function, pool, ready->second.endpoint);
        }
      }
    } else if (pool->in_flight == 0 || now >= pool->drain_until) {
      order.want = 0;
    } else {
      due = std::min(due, pool->drain_until);
    }
    if (pool->ensure_error) {
      due = std::min(due, pool->ensure_retry);
    } else if (order.want != pool->want) {
      orders.push_back(order);
      if (pool->role == Pool::Role::kDraining)
        due = now;  // to forget it, once the runtime was told
    }
    // Not before the runtime took it: a refused order would leave replicas behind that nobody
    // knows.
    const bool drained = pool->role == Pool::Role::kDraining && order.want == 0 && pool->want == 0;
    it = drained ? function->pools.erase(it) : std::next(it);
  }
  return orders;
}

int Activator::PlanServing(FunctionState& f, base::SteadyPoint now, base::SteadyPoint& due,
                           std::string& retire) {
  auto& pool = *f.serving;
  if (f.route->switched_off) return 0;
  if (!f.waiters.empty()) due = std::min(due, now + kRecheck);
  const int needed = f.Needed(now);
  const auto idle = std::chrono::nanoseconds(f.route->scaling.idle_timeout);
  if (needed >= pool.want) {
    // Nothing tells when calls end: look again when the first replica may have been idle long
    // enough.
    if (needed > f.route->scaling.min_replicas)
      due = std::min(due, now + std::max<std::chrono::nanoseconds>(idle, kRecheck));
    return needed;
  }
  if (auto* replica = pool.IdleReplica(idle, now)) {
    replica->retiring = true;
    replica->usable = false;
    retire = replica->id;
    due = now;  // perhaps there is one more
    return pool.want - 1;
  }
  const int most = std::max(f.route->scaling.max_replicas, f.route->scaling.min_replicas);
  if (pool.want > most) return most;
  const auto quiet = std::max<std::chrono::nanoseconds>(idle, kLeastFailureIdle);
  if (pool.Ready() == 0 && pool.starting == 0 && pool.in_flight == 0 &&
      now - pool.last_demand >= quiet)
    return needed;
  auto next = now + std::max<std::chrono::nanoseconds>(idle, kRecheck);
  for (const auto& [id, replica] : pool.replicas) {
    if (replica.usable && replica.in_flight == 0) next = std::min(next, replica.last_used + idle);
  }
  due = std::min(due, std::max(next, now + std::chrono::milliseconds(10)));
  return pool.want;
}

void Activator::Carry(FunctionState& function, const Order& order) {
  auto status = order.retire.empty()
                    ? deps_.runtime.Ensure(order.key, order.spec, order.want)
                    : deps_.runtime.Retire(order.key, order.spec, order.want, order.retire);
  if (!status) {
    deps_.log.Warn("the runtime refuses", {{"revision", order.key.ToString()},
                                           {"want", order.want},
                                           {"error", base::ToString(status.error())}});
  }
  std::lock_guard lock(function.mutex);
  auto& pool = *order.pool;
  if (status) {
    pool.want = order.want;
    return;
  }
  pool.ensure_error = status.error();
  pool.ensure_retry = deps_.clock.Steady() + kEnsureRetry;
  if (order.pool == function.serving && pool.Ready() == 0 && !function.waiters.empty()) {
    FailWaiters(function, *WhyNot(function, deps_.clock.Steady()));
  }
}

void Activator::StartProbe(std::shared_ptr<FunctionState> function, std::shared_ptr<Pool> pool,
                           std::string endpoint) {
  const auto executor = http::NextExecutor(deps_.io);
  auto call = deps_.upstream.Call(executor, std::move(endpoint),
                                  std::chrono::steady_clock::now() + std::chrono::seconds(5));
  boost::asio::co_spawn(executor, Probe(std::move(call)),
                        [desk = desk_, function, pool](std::exception_ptr error, bool healthy) {
                          {
                            std::lock_guard lock(function->mutex);
                            pool->probing = false;
                            if (!error && healthy) pool->probed = true;
                          }
                          if (!error && healthy) desk->Poke({function->ns, function->name});
                        });
}

http::Task<bool> Activator::Probe(std::unique_ptr<http::UpstreamCall> call) {
  http::Headers headers;
  const auto sent = co_await call->Open("GET", "/healthz", std::move(headers), 0);
  if (!sent) co_return false;
  const auto head = co_await call->ReadHead();
  if (!head || head->status != 200) co_return false;
  for (;;) {
    const auto piece = co_await call->ReadBody();
    if (!piece) co_return false;
    if (piece->empty()) co_return true;
  }
}

void Activator::Tell(FunctionState& function) {
  bool changed = false;
  {
    std::lock_guard lock(function.mutex);
    auto now = function.Show();
    changed = now != function.shown;
    function.shown = std::move(now);
  }
  if (!changed) return;
  std::function<void(const std::string&, const std::string&)> callback;
  {
    std::lock_guard lock(callback_mutex_);
    callback = callback_;
  }
  if (callback) callback(function.ns, function.name);
}

}  // namespace sless::gateway
