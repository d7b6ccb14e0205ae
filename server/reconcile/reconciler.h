#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "client/api/object.h"
#include "client/base/result.h"

namespace sless::reconcile {

/// When a key wants to be looked at again, if nothing changes before.
struct Next {
  std::optional<std::chrono::milliseconds> after;
  static Next Done() { return {}; }
  static Next After(std::chrono::milliseconds wait) { return {wait}; }
};

/// Puts a key into the queue. Cheap; from any thread.
using Enqueue = std::function<void(const api::ObjectKey& key)>;

/// Brings one kind of objects from what is to what is wanted, one step at a time.
///
/// Reconcile looks at what is, not at what changed: it may be called at any time, any number of
/// times, and after a crash at any point. Never at the same time for one key. It does not wait for
/// something to become ready, it returns Next::After.
class Reconciler {
 public:
  virtual ~Reconciler() = default;
  /// An error is logged and tried again with backoff.
  virtual base::Result<Next> Reconcile(const api::ObjectKey& key) = 0;
};

}  // namespace sless::reconcile
