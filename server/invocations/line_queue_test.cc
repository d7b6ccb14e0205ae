#include "server/invocations/line_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>

namespace sless::invocations {
namespace {

using namespace std::chrono_literals;

// Whoever waits for room waits for some lines to be written, not for all.
TEST(LineQueue, HasRoomAgainBeforeItIsEmpty) {
  std::counting_semaphore<> may_write(0);
  std::atomic<size_t> written = 0;
  LineQueue queue(8 << 20, [&](std::vector<QueuedLine> lines) {
    may_write.acquire();
    written += lines.size();
  });
  const std::string line(100'000, 'x');
  while (!queue.Behind()) ASSERT_TRUE(queue.Push({"ns", "f", {.line = line}}));
  for (int batches = 0; batches < 10 && queue.Behind(); ++batches) {
    may_write.release();
    for (int i = 0; i < 500 && queue.Behind(); ++i) std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(queue.Behind());
  EXPECT_LT(written, 10u);
  may_write.release(1000);
  queue.Settle(10s);
  EXPECT_GT(written, 40u);
}

TEST(LineQueue, RefusesWhatDoesNotFit) {
  std::binary_semaphore may_write(0);
  LineQueue queue(1 << 20, [&](std::vector<QueuedLine>) {
    may_write.acquire();
    may_write.release();
  });
  const std::string line(300'000, 'x');
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.Push({"ns", "f", {.line = line}}));
  EXPECT_FALSE(queue.Push({"ns", "f", {.line = line}}));
  may_write.release();
  queue.Settle(10s);
  EXPECT_TRUE(queue.Push({"ns", "f", {.line = line}}));
}

}  // namespace
}  // namespace sless::invocations
