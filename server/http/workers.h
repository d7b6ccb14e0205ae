#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sless::http {

/// Threads for work that may block, with a bounded queue. Thread-safe.
class Workers {
 public:
  Workers(int threads, size_t max_queued);
  /// Runs what is queued, then ends.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  /// False where the queue is full or the pool is ending: `work` was not taken.
  bool Post(std::function<void()> work);

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
