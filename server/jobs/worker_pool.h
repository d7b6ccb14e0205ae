#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace sless::jobs {

/// A fixed number of threads for work that blocks. Tasks run in the order they came.
///
/// Thread safety: Submit may be called from any thread, Stop from one.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  /// Stops as Stop does.
  ~WorkerPool();

  /// A task gets the pool's stop token. After Stop it is dropped.
  void Submit(std::function<void(std::stop_token)> task);
  /// Asks running tasks to stop, drops waiting ones, returns when all threads ended.
  void Stop();

 private:
  void Run(std::stop_token stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::function<void(std::stop_token)>> tasks_;
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace sless::jobs
