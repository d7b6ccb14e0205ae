#include <map>
#include <unordered_map>

#include "client/base/guarded.h"
#include "server/http/message.h"

namespace sless::http {

struct WakeHub::Impl {
  struct State {
    uint64_t next_id = 1;
    size_t waiting = 0;
    std::unordered_map<std::string, std::map<uint64_t, std::function<void()>>> topics;
  };
  base::Guarded<State> state;
};

WakeHub::WakeHub() : impl_(std::make_unique<Impl>()) {}
WakeHub::~WakeHub() = default;

void WakeHub::Notify(const std::string& topic) {
  // Called under the lock: a wake only posts to an event loop, and Forget must not return while one
  // still runs.
  impl_->state.With([&](Impl::State& state) {
    const auto it = state.topics.find(topic);
    if (it == state.topics.end()) return;
    for (const auto& [id, wake] : it->second) wake();
  });
}

uint64_t WakeHub::Listen(const std::string& topic, std::function<void()> wake) {
  return impl_->state.With([&](Impl::State& state) {
    const auto id = state.next_id++;
    state.topics[topic].emplace(id, std::move(wake));
    ++state.waiting;
    return id;
  });
}

void WakeHub::Forget(const std::string& topic, uint64_t id) {
  impl_->state.With([&](Impl::State& state) {
    const auto it = state.topics.find(topic);
    if (it == state.topics.end()) return;
    state.waiting -= it->second.erase(id);
    if (it->second.empty()) state.topics.erase(it);
  });
}

size_t WakeHub::waiting() const {
  return impl_->state.With([](const Impl::State& state) { return state.waiting; });
}

}  // namespace sless::http
