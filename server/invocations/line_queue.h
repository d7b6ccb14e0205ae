#pragma once

// Lines on their way to the disk; for this room only.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/base/clock.h"
#include "server/invocations/log_store.h"

namespace sless::invocations {

struct QueuedLine {
  std::string ns;
  std::string function;
  LogRecord record;
};

/// A bounded queue with a thread of its own that empties it, so that whoever has lines waits for no
/// disk. Thread safety: all methods may be called at the same time from any thread.
class LineQueue {
 public:
  /// `write` is called from the queue's thread with some of what came, oldest first.
  LineQueue(size_t max_bytes, std::function<void(std::vector<QueuedLine>)> write);
  /// Writes what is left.
  ~LineQueue();

  /// False: full, the line was not taken.
  bool Push(QueuedLine line);
  /// More than half full.
  bool Behind() const;
  /// Waits until what was pushed before is written, at most so long.
  void Settle(std::chrono::milliseconds most) const;

 private:
  void Run();

  const size_t max_bytes_;
  const std::function<void(std::vector<QueuedLine>)> write_;
  mutable std::mutex mutex_;
  std::condition_variable pushed_;
  mutable std::condition_variable written_;
  std::deque<QueuedLine> lines_;
  size_t bytes_ = 0;  // of lines_ and of those that are being written
  uint64_t count_pushed_ = 0, count_written_ = 0;
  bool end_ = false;
  std::thread thread_;  // last: all else exists before it starts
};

}  // namespace sless::invocations
