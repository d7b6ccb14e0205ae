#include "server/jobs/work_queue.h"

#include <algorithm>

namespace sless::jobs {

void WorkQueue::Put(const api::ObjectKey& key, base::SteadyPoint due) {
  if (running_.contains(key)) {
    const auto [it, fresh] = again_.emplace(key, due);
    if (!fresh) it->second = std::min(it->second, due);
    return;
  }
  const auto [it, fresh] = due_.emplace(key, due);
  if (!fresh) {
    if (it->second <= due) return;
    order_.erase({it->second, key});
    it->second = due;
  }
  order_.emplace(due, key);
  changed_.notify_one();
}

void WorkQueue::AddAfter(const api::ObjectKey& key, std::chrono::milliseconds wait) {
  std::lock_guard lock(mutex_);
  Put(key, clock_.Steady() + wait);
}

void WorkQueue::Retry(const api::ObjectKey& key) {
  std::lock_guard lock(mutex_);
  const int failures = failures_[key]++;
  auto wait = backoff_.first;
  for (int i = 0; i < failures && wait < backoff_.max; ++i) wait *= 2;
  Put(key, clock_.Steady() + std::min(wait, backoff_.max));
}

void WorkQueue::Forget(const api::ObjectKey& key) {
  std::lock_guard lock(mutex_);
  failures_.erase(key);
}

std::optional<api::ObjectKey> WorkQueue::Take(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    if (order_.empty()) {
      changed_.wait(lock, stop, [&] { return !order_.empty(); });
      continue;
    }
    const auto first = *order_.begin();
    const auto now = clock_.Steady();
    if (first.first <= now) {
      order_.erase(order_.begin());
      due_.erase(first.second);
      running_.insert(first.second);
      // One notice may have stood for several keys: pass it on.
      if (!order_.empty()) changed_.notify_one();
      return first.second;
    }
    changed_.wait_for(lock, stop, first.first - now,
                      [&] { return !order_.empty() && order_.begin()->first < first.first; });
  }
  return std::nullopt;
}

void WorkQueue::Done(const api::ObjectKey& key) {
  std::lock_guard lock(mutex_);
  running_.erase(key);
  const auto it = again_.find(key);
  if (it == again_.end()) return;
  const auto due = it->second;
  again_.erase(it);
  Put(key, due);
}

size_t WorkQueue::Depth() const {
  std::lock_guard lock(mutex_);
  return due_.size() + running_.size();
}

}  // namespace sless::jobs
