#include "server/invocations/line_queue.h"

#include <utility>

namespace sless::invocations {
namespace {

constexpr size_t kOverhead = 256;  // of a record beside its line

size_t BytesOf(const QueuedLine& line) { return line.record.line.size() + kOverhead; }

}  // namespace

LineQueue::LineQueue(size_t max_bytes, std::function<void(std::vector<QueuedLine>)> write)
    : max_bytes_(max_bytes), write_(std::move(write)), thread_([this] { Run(); }) {}

LineQueue::~LineQueue() {
  {
    std::lock_guard lock(mutex_);
    end_ = true;
  }
  pushed_.notify_all();
  thread_.join();
}

bool LineQueue::Push(QueuedLine line) {
  {
    std::lock_guard lock(mutex_);
    const size_t bytes = BytesOf(line);
    if (bytes_ + bytes > max_bytes_) return false;
    bytes_ += bytes;
    ++count_pushed_;
    lines_.push_back(std::move(line));
  }
  pushed_.notify_one();
  return true;
}

bool LineQueue::Behind() const {
  std::lock_guard lock(mutex_);
  return bytes_ > max_bytes_ / 2;
}

void LineQueue::Settle(std::chrono::milliseconds most) const {
  std::unique_lock lock(mutex_);
  written_.wait_for(lock, most, [&, upto = count_pushed_] { return count_written_ >= upto; });
}

void LineQueue::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    pushed_.wait(lock, [&] { return end_ || !lines_.empty(); });
    if (lines_.empty()) return;
    auto lines = std::exchange(lines_, {});
    const size_t bytes = bytes_, count = lines.size();
    lock.unlock();
    write_(std::move(lines));
    lock.lock();
    bytes_ -= bytes;  // what came meanwhile stays counted
    count_written_ += count;
    written_.notify_all();
  }
}

}  // namespace sless::invocations
