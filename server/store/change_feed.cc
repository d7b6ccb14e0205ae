#include "server/store/change_feed.h"

#include <mutex>

namespace sless::store {

struct ChangeFeed::State {
  std::mutex
      mutex;  // held while callbacks run, so that ending a subscription waits for a running one
  std::map<int64_t, std::function<void(const Change&)>> callbacks;
  int64_t next_id = 0;
};

class ChangeFeed::Entry final : public Subscription {
 public:
  Entry(std::shared_ptr<State> state, int64_t id) : state_(std::move(state)), id_(id) {}
  ~Entry() override {
    std::lock_guard lock(state_->mutex);
    state_->callbacks.erase(id_);
  }

 private:
  std::shared_ptr<State> state_;
  int64_t id_;
};

ChangeFeed::ChangeFeed() : state_(std::make_shared<State>()) {}

void ChangeFeed::Publish(const Change& change) {
  std::lock_guard lock(state_->mutex);
  for (const auto& [id, callback] : state_->callbacks) callback(change);
}

std::unique_ptr<Subscription> ChangeFeed::Subscribe(std::function<void(const Change&)> callback) {
  std::lock_guard lock(state_->mutex);
  const int64_t id = state_->next_id++;
  state_->callbacks.emplace(id, std::move(callback));
  return std::make_unique<Entry>(state_, id);
}

}  // namespace sless::store
