#include "server/invocations/line_queue.h"

#include <utility>

namespace sless::invocations {
namespace {

constexpr size_t kOverhead = 256;  // of a record beside its line
// Written at once: small, so that there is room again long before a full queue is empty.
constexpr size_t kBatch = 256 * 1024;

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
    std::vector<QueuedLine> batch;
    size_t bytes = 0;
    for (; !lines_.empty() && bytes < kBatch; lines_.pop_front()) {
      bytes += BytesOf(lines_.front());
      batch.push_back(std::move(lines_.front()));
    }
    const size_t count = batch.size();
    lock.unlock();
    write_(std::move(batch));
    lock.lock();
    bytes_ -= bytes;
    count_written_ += count;
    written_.notify_all();
  }
}

}  // namespace sless::invocations
