#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "server/gateway/invoker.h"

namespace sless::jobs {

/// An invoker whose answers the test decides. Thread-safe.
class FakeInvoker final : public gateway::Invoker {
 public:
  using Answer = std::function<base::Result<gateway::EventResult>(const gateway::EventCall&)>;

  /// What each call gets, after Hold is off.
  void Answers(Answer answer) {
    std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  /// While on, calls stay inside until it is off or they are stopped.
  void Hold(bool on) {
    std::lock_guard lock(mutex_);
    hold_ = on;
    changed_.notify_all();
  }
  /// While on, calls that are cancelled stay inside, as handlers do that are slow to end.
  void Linger(bool on) {
    std::lock_guard lock(mutex_);
    linger_ = on;
    changed_.notify_all();
  }
  std::vector<gateway::EventCall> calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  /// Most calls with one event at once.
  int most_at_once() const {
    std::lock_guard lock(mutex_);
    return most_;
  }
  int inside() const {
    std::lock_guard lock(mutex_);
    return inside_;
  }

  base::Result<gateway::EventResult> Invoke(const gateway::EventCall& call,
                                            std::stop_token stop) override {
    std::unique_lock lock(mutex_);
    calls_.push_back(call);
    ++inside_;
    most_ = std::max(most_, ++by_event_[call.event_json]);
    const auto cancelled = [&] { return call.cancel.stop_requested() && !linger_; };
    while (hold_ && !stop.stop_requested() && !cancelled()) {
      changed_.wait_for(lock, std::chrono::milliseconds(2));  // two tokens may wake it
    }
    --inside_;
    --by_event_[call.event_json];
    if (stop.stop_requested() || call.cancel.stop_requested())
      return base::Err(base::Code::kCancelled, "stopped");
    const auto answer = answer_;
    lock.unlock();
    if (answer) return answer(call);
    return gateway::EventResult{"{\"ok\":true}", {"a line"}, 1, 5};
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  Answer answer_;
  bool hold_ = false, linger_ = false;
  std::vector<gateway::EventCall> calls_;
  std::map<std::string, int> by_event_;
  int inside_ = 0;
  int most_ = 0;
};

}  // namespace sless::jobs
