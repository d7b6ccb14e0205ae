#include "server/gateway/activator.h"

#include <fmt/format.h>

#include <algorithm>

#include "server/http/signal.h"

namespace sless::gateway {
namespace {

using base::Code;

base::Error Unavailable(std::string message, std::string reason) {
  return {Code::kUnavailable, std::move(message), "", std::move(reason), {}};
}

std::chrono::seconds ColdStartLimit(const runtime::ReplicaSpec& spec) {
  return std::chrono::seconds(std::clamp<int64_t>(spec.timeout_sec, 10, 60));
}

}  // namespace

Slot& Slot::operator=(Slot&& other) noexcept {
  if (this == &other) return *this;
  Release();
  owner_ = std::exchange(other.owner_, nullptr);
  function_ = std::move(other.function_);
  pool_ = std::move(other.pool_);
  replica_ = std::move(other.replica_);
  endpoint_ = std::move(other.endpoint_);
  return *this;
}

void Slot::Release(Verdict verdict) {
  if (auto* owner = std::exchange(owner_, nullptr))
    owner->Release(*function_, *pool_, replica_, verdict);
}

Activator::Activator(Deps deps)
    : deps_(deps), table_(std::make_shared<const Table>()), restoring_(deps.options.restoring) {
  // Not by `this`: a change that is told on another thread may still be on its way when the
  // activator ends.
  deps_.runtime.OnChange([desk = desk_](const runtime::RevisionKey& key) {
    desk->Poke({key.ns, key.name});
  });
  keeper_ = std::jthread([this](std::stop_token stop) { Keep(std::move(stop)); });
}

Activator::~Activator() {
  Stop();
  {
    // Under the lock, so that it cannot fall between the keeper's look at the token and its sleep.
    std::lock_guard lock(desk_->mutex);
    keeper_.request_stop();
  }
  desk_->wake.notify_all();
  keeper_.join();
}

void Activator::Stop() {
  if (stopping_.exchange(true)) return;
  for (const auto& [key, function] : *table_.load()) {
    std::lock_guard lock(function->mutex);
    FailWaiters(*function, Unavailable("the server is stopping", "Stopping"));
  }
}

std::shared_ptr<FunctionState> Activator::Find(std::string_view ns, std::string_view name) const {
  const auto table = table_.load();
  const auto it = table->find(Key(ns, name));
  return it == table->end() ? nullptr : it->second;
}

std::shared_ptr<const FunctionRoute> Activator::Route(FunctionState& function) {
  std::lock_guard lock(function.mutex);
  return function.removed ? nullptr : function.route;
}

std::shared_ptr<FunctionState> Activator::Edit(const std::string& ns, const std::string& name,
                                               bool create) {
  std::lock_guard lock(edit_);
  const auto table = table_.load();
  const auto it = table->find(Key(ns, name));
  if (create && it == table->end()) {
    auto next = std::make_shared<Table>(*table);
    auto function = std::make_shared<FunctionState>();
    function->ns = ns;
    function->name = name;
    next->emplace(Key(ns, name), function);
    table_.store(std::move(next));
    return function;
  }
  return it == table->end() ? nullptr : it->second;
}

base::Result<Prepared> Activator::Prepare(const runtime::RevisionKey& revision,
                                          const runtime::ReplicaSpec& spec,
                                          const Scaling& scaling) {
  const auto function = Edit(revision.ns, revision.name, true);
  Prepared prepared;
  {
    std::lock_guard lock(function->mutex);
    auto& pool = function->pools[revision.revision];
    if (!pool) {
      pool = std::make_shared<Pool>();
      pool->key = revision;
      pool->spec = spec;
      pool->last_demand = deps_.clock.Steady();
    }
    if (pool->role == Pool::Role::kPrepared) pool->prepare_want = std::max(1, scaling.min_replicas);
    if (pool->prepare_failure) {
      prepared = {Readiness::kFailed, pool->prepare_failure};
    } else if (pool->probed || pool->role == Pool::Role::kServing) {
      prepared.readiness = Readiness::kReady;
    } else if (pool->ensure_error) {
      return base::Err(*pool->ensure_error);
    }
  }
  Poke({revision.ns, revision.name});
  return prepared;
}

void Activator::Abandon(const runtime::RevisionKey& revision) {
  const auto function = Edit(revision.ns, revision.name, false);
  if (!function) return;
  runtime::ReplicaSpec spec;
  {
    std::lock_guard lock(function->mutex);
    const auto it = function->pools.find(revision.revision);
    if (it == function->pools.end() || it->second->role != Pool::Role::kPrepared) return;
    spec = it->second->spec;
    function->pools.erase(it);
  }
  StopRevision(revision, spec);
}

void Activator::Publish(FunctionRoute route) {
  const auto function = Edit(route.ns, route.name, true);
  const auto now = deps_.clock.Steady();
  {
    std::lock_guard lock(function->mutex);
    std::shared_ptr<Pool> next;
    if (route.revision) {
      auto& pool = function->pools[route.revision->revision];
      if (!pool) {
        pool = std::make_shared<Pool>();
        pool->key = *route.revision;
        pool->spec = route.spec;
      }
      next = pool;
      next->role = Pool::Role::kServing;
      next->last_demand = now;
    }
    if (function->serving && function->serving != next) {
      auto& old = *function->serving;
      old.role = Pool::Role::kDraining;
      old.drain_until = now + std::chrono::seconds(old.spec.timeout_sec) + std::chrono::seconds(2);
    }
    function->serving = next;
    function->route = std::make_shared<const FunctionRoute>(std::move(route));
    if (const auto why = WhyNot(*function, now)) {
      FailWaiters(*function, *why);
    } else {
      Grant(*function);
    }
  }
  Poke({function->ns, function->name});
}

void Activator::Remove(const std::string& ns, const std::string& name) {
  std::shared_ptr<FunctionState> function;
  {
    std::lock_guard lock(edit_);
    const auto table = table_.load();
    const auto it = table->find(Key(ns, name));
    if (it == table->end()) return;
    function = it->second;
    auto next = std::make_shared<Table>(*table);
    next->erase(Key(ns, name));
    table_.store(std::move(next));
  }
  std::map<int64_t, std::shared_ptr<Pool>> pools;
  {
    std::lock_guard lock(function->mutex);
    function->removed = true;
    pools.swap(function->pools);
    FailWaiters(*function, {Code::kNotFound,
                            fmt::format("function {}/{} was deleted", ns, name),
                            "",
                            "NoSuchFunction",
                            {}});
  }
  deps_.metrics.Forget("function", function->Id());
  // The runners drain: calls that run end within the runtime's grace time.
  for (const auto& [number, pool] : pools) StopRevision(pool->key, pool->spec);
}

Load Activator::Observe(const std::string& ns, const std::string& name) const {
  const auto function = Find(ns, name);
  if (!function) return {};
  std::lock_guard lock(function->mutex);
  return function->CurrentLoad(deps_.clock.Steady());
}

void Activator::OnChange(std::function<void(const std::string&, const std::string&)> callback) {
  std::lock_guard lock(callback_mutex_);
  callback_ = std::move(callback);
}

std::optional<base::Error> Activator::WhyNot(const FunctionState& f, base::SteadyPoint now) const {
  if (stopping_) return Unavailable("the server is stopping", "Stopping");
  if (f.removed)
    return base::Error{
        Code::kNotFound, fmt::format("function {} was deleted", f.Id()), "", "NoSuchFunction", {}};
  if (f.route && f.route->switched_off) {
    return Unavailable(fmt::format("function {} is switched off (replicas = 0)", f.Id()),
                       "SwitchedOff");
  }
  if (!f.serving) {
    const bool said = f.route && !f.route->not_ready_reason.empty();
    return Unavailable(fmt::format("function {} does not serve yet, {}", f.Id(),
                                   said ? f.route->not_ready_reason : "it is being built"),
                       "NotReady");
  }
  if (!f.serving->CrashLoops(now)) return std::nullopt;
  if (f.serving->ensure_error) {
    return Unavailable(
        fmt::format("function {} cannot be started: {}", f.Id(), f.serving->ensure_error->message),
        "StartFailed");
  }
  const auto& failure = *f.serving->failure;
  auto error =
      Unavailable(fmt::format("function {} does not start: {}", f.Id(), f.CurrentLoad(now).note),
                  failure.reason);
  error.source = {failure.file, static_cast<int>(failure.line), failure.log_tail};
  return error;
}

base::Error Activator::TimeoutError(const FunctionState& f) const {
  const auto limit = f.serving ? ColdStartLimit(f.serving->spec).count() : 10;
  if (f.serving && f.serving->Ready() > 0) {
    return Unavailable(
        fmt::format("all {} replicas of function {} were busy for {} s (concurrency {}, at most {} "
                    "replicas)",
                    f.serving->Ready(), f.Id(), limit, f.serving->spec.concurrency,
                    f.route->scaling.max_replicas),
        "Saturated");
  }
  std::string message =
      fmt::format("no replica of function {} became ready within {} s", f.Id(), limit);
  if (f.serving && f.serving->failure)
    message += fmt::format(": {}: {}", f.serving->failure->reason, f.serving->failure->message);
  return Unavailable(std::move(message), "ColdStartTimeout");
}

bool Activator::TakeSlot(FunctionState& function, Waiter& waiter, base::SteadyPoint now) {
  auto* replica = function.serving->FreeReplica();
  if (replica == nullptr) return false;
  ++replica->in_flight;
  ++function.serving->in_flight;
  replica->last_used = function.serving->last_demand = now;
  waiter.pool = function.serving;
  waiter.replica = replica->id;
  waiter.endpoint = replica->endpoint;
  waiter.done = true;
  return true;
}

void Activator::Grant(FunctionState& function) {
  const auto now = deps_.clock.Steady();
  while (function.serving && !function.waiters.empty() &&
         TakeSlot(function, *function.waiters.front(), now)) {
    function.waiters.front()->signal->Set();
    function.waiters.pop_front();
  }
}

void Activator::FailWaiters(FunctionState& function, const base::Error& error) {
  for (const auto& waiter : function.waiters) {
    waiter->error = error;
    waiter->done = true;
    waiter->signal->Set();
  }
  function.waiters.clear();
}

void Activator::Release(FunctionState& function, Pool& pool, const std::string& replica,
                        Verdict verdict) {
  bool poke = verdict == Verdict::kSuspect;
  {
    std::lock_guard lock(function.mutex);
    const auto now = deps_.clock.Steady();
    --pool.in_flight;
    pool.last_demand = now;
    if (const auto it = pool.replicas.find(replica); it != pool.replicas.end()) {
      auto& slots = it->second;
      --slots.in_flight;
      slots.last_used = now;
      poke = poke || slots.spent;
      if (verdict == Verdict::kServed) slots.ResetRefusals();
      if (verdict == Verdict::kRefused || verdict == Verdict::kSuspect)
        slots.Refuse(now, deps_.options.refusing_for);
      if (verdict == Verdict::kSuspect) {
        slots.usable = false;
        slots.suspect_until = now + std::chrono::milliseconds(200);
      }
      poke = poke || slots.spent;
    }
    poke = poke || (pool.role == Pool::Role::kDraining && pool.in_flight == 0);
    Grant(function);
  }
  if (poke) Poke({function.ns, function.name});
}

http::Task<base::Result<Slot>> Activator::Acquire(boost::asio::any_io_executor executor,
                                                  std::shared_ptr<FunctionState> function,
                                                  std::stop_token gone) {
  const auto began = std::chrono::steady_clock::now();
  auto waiter = std::make_shared<Waiter>();
  bool cold = false;
  std::chrono::seconds limit{10};
  {
    std::lock_guard lock(function->mutex);
    const auto now = deps_.clock.Steady();
    if (function->serving) function->serving->last_demand = now;
    if (auto why = WhyNot(*function, now)) co_return base::Err(std::move(*why));
    if (function->waiters.empty() && TakeSlot(*function, *waiter, now)) {
      co_return Slot(this, function, waiter->pool, waiter->replica, waiter->endpoint);
    }
    if (function->waiters.size() >= deps_.options.max_waiting) {
      co_return base::Err(Unavailable(fmt::format("{} calls of function {} wait already",
                                                  function->waiters.size(), function->Id()),
                                      "TooManyWaiting"));
    }
    cold = function->serving->Ready() == 0;
    limit = ColdStartLimit(function->serving->spec);
    waiter->signal = std::make_shared<http::Signal>(executor);
    function->waiters.push_back(waiter);
  }
  Poke({function->ns, function->name});
  bool done = false;
  {
    std::stop_callback on_gone(gone, [signal = waiter->signal] { signal->Set(); });
    const auto until = began + limit;
    while (!done) {
      co_await waiter->signal->Wait(until);
      std::lock_guard lock(function->mutex);
      done = waiter->done;
      if (done) break;
      const bool late = std::chrono::steady_clock::now() >= until;
      if (!late && !gone.stop_requested()) continue;
      std::erase(function->waiters, waiter);
      waiter->error = late ? TimeoutError(*function)
                           : base::Error{Code::kCancelled, "the caller is gone", "", "", {}};
      done = true;
    }
  }
  if (cold) {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    function->Measure([&] {
      deps_.metrics
          .Counters("sless_cold_starts_total", "Calls that waited for a first replica",
                    {"function"})
          .With({function->Id()})
          .Add();
      deps_.metrics
          .Histograms("sless_cold_start_wait_seconds", "How long they waited", {"function"})
          .With({function->Id()})
          .Observe(took.count());
    });
  }
  if (waiter->error) co_return base::Err(std::move(*waiter->error));
  co_return Slot(this, function, waiter->pool, waiter->replica, waiter->endpoint);
}

}  // namespace sless::gateway
