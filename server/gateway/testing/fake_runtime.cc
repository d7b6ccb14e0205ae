#include "server/gateway/testing/fake_runtime.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "client/base/strings.h"
#include "server/http/stream.h"

namespace sless::gateway {

using runtime::ReplicaState;

struct FakeRuntime::Node {
  runtime::Replica replica;
  std::unique_ptr<http::Server> server;
  runtime::ReplicaSpec spec;
  std::atomic<int> running{0};
  std::atomic<bool> wedged{false};
  std::atomic<bool> replacing{false};
};

namespace {

http::Response RunnerError(int status, const std::string& reason) {
  auto response = http::Response::Json(
      status,
      fmt::format(
          R"({{"code":"Internal","message":"fake","reason":"{}","file":"handler.py","line":3}})",
          reason));
  response.headers.Add("X-Sless-Error", reason);
  return response;
}

}  // namespace

FakeRuntime::FakeRuntime() = default;
FakeRuntime::~FakeRuntime() { Shutdown(base::Deadline::Never()); }

http::Router FakeRuntime::MakeRouter(const std::shared_ptr<Node>& node, int64_t revision) {
  http::Router router;
  router.Add("GET", "/healthz",
             [](http::Request&) { return http::Response::Json(200, R"({"status":"ready"})"); });
  const auto call = [this, weak = std::weak_ptr(node), revision](http::Request& r) -> http::Reply {
    const auto self = weak.lock();
    if (refuse_next.exchange(false)) return RunnerError(503, "Draining");
    if (self->running > 0 && self->replacing) return RunnerError(503, "Draining");
    if (r.Query("stuck")) self->replacing = true;
    if (r.Query("wedge")) self->wedged = true;
    if (r.Query("busy") || self->wedged) return RunnerError(503, "Busy");
    ++calls;
    const int now = ++self->running;
    int most = most_at_once;
    while (now > most && !most_at_once.compare_exchange_weak(most, now)) {
    }
    const auto until = std::chrono::steady_clock::now() +
                       std::chrono::milliseconds(*r.QueryInt("sleep", 0, 0, 60000));
    while (std::chrono::steady_clock::now() < until && !r.gone.stop_requested())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (r.body == "\"slow to end\"") {
      while (!r.gone.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    if (r.gone.stop_requested()) ++cancelled;
    --self->running;
    if (r.Query("error")) return RunnerError(502, "HandlerError");
    if (r.method == "POST" && r.path == "/event") {
      if (r.body == "\"huge\"") return http::Response::Text(200, std::string(33 << 20, 'x'));
      if (r.body == "\"raise\"") return RunnerError(422, "HandlerError");
      if (r.body == "\"die\"") return RunnerError(502, "ReplicaDied");
      return http::Response::Json(
          200, fmt::format(R"({{"resultJson":{},"logTail":["line"],"durationMs":5}})",
                           "\"{\\\"revision\\\":" + std::to_string(revision) + "}\""));
    }
    const auto size = static_cast<size_t>(*r.QueryInt("size", 0, 0, 100'000'000));
    auto response = http::Response::Text(
        200, size > 0 ? std::string(size, 'x') : fmt::format("{} {} {}", revision, r.rest, r.body));
    for (const auto& [name, value] : r.headers) response.headers.Add("Echo-" + name, value);
    return response;
  };
  router.Add("POST", "/event", call, {.max_body = 100'000'000});
  http::AddStream(router, "*", "/http/*",
                  [this, call](http::Exchange& exchange) -> http::Task<void> {
                    auto request = exchange.request();
                    if (request.Query("deaf")) {
                      boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor,
                                                      std::chrono::seconds(5));
                      co_await timer.async_wait(boost::asio::use_awaitable);
                    }
                    for (;;) {
                      const auto piece = co_await exchange.ReadBody();
                      if (!piece) co_return;
                      if (piece->empty()) break;
                      received += piece->size();
                      request.body.append(*piece);
                    }
                    std::optional<http::Reply> reply;
                    std::function<void()> work = [&] { reply = call(request); };
                    co_await exchange.OnWorker(work);
                    co_await exchange.Respond(std::move(reply->response()));
                  },
                  {.max_body = 100'000'000});
  return router;
}

void FakeRuntime::Start(const runtime::RevisionKey& revision, const std::shared_ptr<Node>& node,
                        const runtime::ReplicaSpec& spec) {
  ++starts;
  threads_.emplace_back([this, revision, node,
                         workers = static_cast<int>(spec.concurrency) + 1](std::stop_token stop) {
    const auto until = std::chrono::steady_clock::now() + start_time;
    while (std::chrono::steady_clock::now() < until && !stop.stop_requested())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::unique_ptr<http::Server> server;
    const bool no_room_now = no_room;
    if (!fail_start && !no_room_now) {
      auto started = http::Server::Start({.workers = workers}, MakeRouter(node, revision.revision),
                                         {io_, log_, metrics_});
      if (started) server = std::move(*started);
    }
    {
      std::lock_guard lock(mutex_);
      if (server) {
        node->replica.endpoint = server->address();
        node->replica.state = ReplicaState::kReady;
        node->server = std::move(server);
      } else {
        node->replica.state = ReplicaState::kFailed;
        node->replica.failure = no_room_now
                                    ? api::Failure{"NoResources", "fork: no room", "", 0, {}}
                                    : api::Failure{"StartFailed",
                                                   "ImportError: no module named x",
                                                   "handler.py",
                                                   1,
                                                   {"secret log line"}};
        node->replica.next_start = std::chrono::steady_clock::now() + std::chrono::minutes(1);
      }
    }
    Changed(revision);
  });
}

base::Status FakeRuntime::Ensure(const runtime::RevisionKey& revision,
                                 const runtime::ReplicaSpec& spec, int want) {
  return Retire(revision, spec, want, "");
}

base::Status FakeRuntime::Retire(const runtime::RevisionKey& revision,
                                 const runtime::ReplicaSpec& spec, int want,
                                 const std::string& idle_replica) {
  if (unreachable) return base::Err(base::Code::kUnavailable, "the platform is away");
  if (refuse && want > 0) return base::Err(base::Code::kResourceExhausted, "no room");
  std::vector<std::shared_ptr<Node>> ended;
  {
    std::lock_guard lock(mutex_);
    auto& nodes = nodes_[revision];
    const auto named = std::find_if(nodes.begin(), nodes.end(),
                                    [&](const auto& n) { return n->replica.id == idle_replica; });
    if (named != nodes.end()) std::rotate(named, named + 1, nodes.end());
    while (static_cast<int>(nodes.size()) > want) {
      ended.push_back(nodes.back());
      nodes.pop_back();
    }
    while (static_cast<int>(nodes.size()) < want) {
      auto node = nodes.emplace_back(std::make_shared<Node>());
      node->replica.id = "r" + std::to_string(next_id_++);
      node->spec = spec;
      Start(revision, node, spec);
    }
  }
  for (const auto& node : ended) {
    std::unique_ptr<http::Server> server;
    {
      std::lock_guard lock(mutex_);
      server = std::move(node->server);
    }
    if (server) server->Stop(std::chrono::seconds(5));
  }
  Changed(revision);
  return base::Ok();
}

std::vector<runtime::Replica> FakeRuntime::Observe(const runtime::RevisionKey& revision) const {
  std::lock_guard lock(mutex_);
  std::vector<runtime::Replica> out;
  const auto it = nodes_.find(revision);
  if (it == nodes_.end()) return out;
  for (const auto& node : it->second) out.push_back(node->replica);
  return out;
}

std::set<std::string> FakeRuntime::LayersInUse() const {
  std::lock_guard lock(mutex_);
  std::set<std::string> layers;
  for (const auto& [key, nodes] : nodes_) {
    for (const auto& node : nodes) {
      layers.insert(node->spec.code_dir);
      layers.insert(node->spec.deps_dir);
    }
  }
  layers.erase("");
  return layers;
}

int FakeRuntime::Running(const runtime::RevisionKey& revision) const {
  const auto seen = Observe(revision);
  return static_cast<int>(std::count_if(
      seen.begin(), seen.end(), [](const auto& r) { return r.state == ReplicaState::kReady; }));
}

void FakeRuntime::Kill(const runtime::RevisionKey& revision, const std::string& replica_id) {
  std::unique_ptr<http::Server> server;
  {
    std::lock_guard lock(mutex_);
    for (const auto& node : nodes_[revision]) {
      if (node->replica.id != replica_id || !node->server) continue;
      server = std::move(node->server);
      node->wedged = false;
      node->replica.state = ReplicaState::kStarting;
      ++node->replica.restarts;
      Start(revision, node, node->spec);
    }
    if (nodes_[revision].empty()) nodes_.erase(revision);
  }
  if (server) server->Stop(std::chrono::milliseconds(0));
  Changed(revision);
}

void FakeRuntime::Crash(const runtime::RevisionKey& revision,
                        std::chrono::milliseconds next_start) {
  std::vector<std::unique_ptr<http::Server>> servers;
  {
    std::lock_guard lock(mutex_);
    for (const auto& node : nodes_[revision]) {
      servers.push_back(std::move(node->server));
      node->replica.state = ReplicaState::kFailed;
      node->replica.failure = api::Failure{"Crashed", "exit code 1", "", 0, {}};
      node->replica.next_start = std::chrono::steady_clock::now() + next_start;
      ++node->replica.restarts;
    }
  }
  for (auto& server : servers) {
    if (server) server->Stop(std::chrono::milliseconds(0));
  }
  Changed(revision);
}

void FakeRuntime::OnChange(std::function<void(const runtime::RevisionKey&)> callback) {
  std::lock_guard lock(mutex_);
  callback_ = std::move(callback);
}

void FakeRuntime::Changed(const runtime::RevisionKey& revision) {
  std::function<void(const runtime::RevisionKey&)> callback;
  {
    std::lock_guard lock(mutex_);
    callback = callback_;
  }
  if (callback) callback(revision);
}

void FakeRuntime::Shutdown(base::Deadline) {
  OnChange(nullptr);
  std::vector<std::jthread> threads;
  std::map<runtime::RevisionKey, std::vector<std::shared_ptr<Node>>> nodes;
  {
    std::lock_guard lock(mutex_);
    threads.swap(threads_);
  }
  threads.clear();
  {
    std::lock_guard lock(mutex_);
    nodes.swap(nodes_);
  }
  nodes.clear();
}

}  // namespace sless::gateway
