#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sless::http {

/// Threads for work that may block, in the order in which it was posted. Thread-safe.
class Workers {
 public:
  Workers(int threads, size_t max_queued);
  /// Runs what is queued, then ends.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  /// For what begins: false where `max_queued` wait already; `work` was not taken.
  bool Post(std::function<void()> work);
  /// For the next step of what has begun, which is too late to refuse. Not bounded here: each
  /// connection has one step at a time.
  void PostNext(std::function<void()> work);

 private:
  void Run();

  const size_t max_queued_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> queue_;
  bool ending_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace sless::http
