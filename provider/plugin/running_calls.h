#pragma once

// The calls that run now, so that they can be asked to stop.

#include <functional>
#include <list>
#include <memory>
#include <stop_token>
#include <vector>

#include "client/base/guarded.h"

namespace sless::plugin {

/// Thread safety: all methods may be called from any thread.
class RunningCalls {
  struct Entry {
    std::stop_source stop;
    std::function<bool()> is_cancelled;
  };
  using Entries = std::list<std::shared_ptr<Entry>>;

 public:
  /// One running call; ends with the object. Must not outlive the RunningCalls.
  class Call {
   public:
    ~Call();
    Call(Call&& other) noexcept;
    Call& operator=(Call&&) = delete;
    std::stop_token stop_token() const { return (*position_)->stop.get_token(); }

   private:
    friend class RunningCalls;
    Call(RunningCalls* owner, Entries::iterator position) : owner_(owner), position_(position) {}
    RunningCalls* owner_;
    Entries::iterator position_;
  };

  /// Registers a call. `is_cancelled` says whether the host gave the call up; it is asked from
  /// other threads while the call runs.
  Call Begin(std::function<bool()> is_cancelled);

  /// Asks every call that runs now to stop. Calls that begin later are not concerned.
  void StopAll();
  /// Asks those calls to stop that the host gave up. To be called now and then.
  void StopCancelled();
  size_t size() const;

 private:
  // The stop callbacks of a call run outside of the lock.
  std::vector<std::shared_ptr<Entry>> Snapshot() const;
  base::Guarded<Entries> entries_;
};

}  // namespace sless::plugin
