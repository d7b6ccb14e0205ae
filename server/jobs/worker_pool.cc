#include "server/jobs/worker_pool.h"

#include <utility>

namespace sless::jobs {

WorkerPool::WorkerPool(int threads) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](std::stop_token stop) { Run(stop); });
  }
}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::Submit(std::function<void(std::stop_token)> task) {
  std::lock_guard lock(mutex_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
  changed_.notify_one();
}

void WorkerPool::Stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    tasks_.clear();
  }
  for (auto& thread : threads_) thread.request_stop();
  threads_.clear();  // joins
}

void WorkerPool::Run(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (changed_.wait(lock, stop, [&] { return !tasks_.empty(); })) {
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task(stop);
    lock.lock();
    if (stop.stop_requested()) return;
  }
}

}  // namespace sless::jobs
