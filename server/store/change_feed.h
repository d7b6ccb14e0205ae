#pragma once

#include <functional>
#include <map>
#include <memory>

#include "server/store/object_store.h"

namespace sless::store {

/// The subscribers of a store.
/// Thread safety: all methods from any thread; callbacks run one at a time, in the order of
/// Publish. A callback must not subscribe, unsubscribe or publish.
class ChangeFeed {
 public:
  ChangeFeed();
  /// Call in commit order, that is, under the writer's lock.
  void Publish(const Change& change);
  /// May outlive the feed.
  std::unique_ptr<Subscription> Subscribe(std::function<void(const Change&)> callback);

 private:
  struct State;
  class Entry;
  std::shared_ptr<State> state_;
};

}  // namespace sless::store
