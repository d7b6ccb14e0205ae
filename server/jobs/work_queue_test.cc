#include "server/jobs/work_queue.h"

#include <gmock/gmock.h>

#include <atomic>
#include <thread>
#include <vector>

#include "client/base/testing/fake_clock.h"

namespace sless::jobs {
namespace {

using std::chrono::milliseconds;

api::ObjectKey Key(const std::string& name) { return {"Function", "default", name}; }

TEST(WorkQueue, TheSameKeyIsThereOnce) {
  const base::SystemClock clock;
  WorkQueue queue(clock);
  queue.Add(Key("a"));
  queue.Add(Key("a"));
  queue.AddAfter(Key("a"), milliseconds(5000));
  EXPECT_EQ(queue.Depth(), 1u);
  std::stop_source stop;
  EXPECT_EQ(queue.Take(stop.get_token()), Key("a"));
  queue.Done(Key("a"));
  EXPECT_EQ(queue.Depth(), 0u);
}

TEST(WorkQueue, TheEarliestOfSeveralTimesCounts) {
  const base::SystemClock clock;
  WorkQueue queue(clock);
  queue.AddAfter(Key("a"), milliseconds(60'000));
  queue.AddAfter(Key("b"), milliseconds(30));
  queue.AddAfter(Key("a"), milliseconds(0));
  std::stop_source stop;
  EXPECT_EQ(queue.Take(stop.get_token()), Key("a"));
  EXPECT_EQ(queue.Take(stop.get_token()), Key("b"));
}

TEST(WorkQueue, AddedWhileRunningComesAgainAfterDone) {
  const base::SystemClock clock;
  WorkQueue queue(clock);
  std::stop_source stop;
  queue.Add(Key("a"));
  ASSERT_EQ(queue.Take(stop.get_token()), Key("a"));
  queue.Add(Key("a"));
  queue.Add(Key("b"));
  EXPECT_EQ(queue.Take(stop.get_token()), Key("b"));
  queue.Done(Key("a"));
  EXPECT_EQ(queue.Take(stop.get_token()), Key("a"));
}

TEST(WorkQueue, SameKeyNeverRunsTwiceAtOnce) {
  const base::SystemClock clock;
  WorkQueue queue(clock);
  std::stop_source stop;
  std::vector<std::atomic<int>> inside(3);
  std::atomic<int> taken{0}, doubled{0};
  std::vector<std::jthread> workers;
  for (int i = 0; i < 8; ++i) {
    workers.emplace_back([&] {
      while (const auto key = queue.Take(stop.get_token())) {
        auto& here = inside[key->name[0] - 'a'];
        if (here.fetch_add(1) != 0) ++doubled;
        std::this_thread::yield();
        here.fetch_sub(1);
        ++taken;
        queue.Done(*key);
      }
    });
  }
  for (int i = 0; i < 3000; ++i) queue.Add(Key(std::string(1, static_cast<char>('a' + i % 3))));
  for (int i = 0; i < 500 && queue.Depth() > 0; ++i) std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(queue.Depth(), 0u);
  stop.request_stop();
  workers.clear();
  EXPECT_EQ(doubled, 0);
  EXPECT_GE(taken, 3);
}

TEST(WorkQueue, BackoffDoublesUntilForgotten) {
  base::FakeClock clock;
  WorkQueue queue(clock, {milliseconds(20), milliseconds(1000)});
  const auto take = [&](milliseconds patience) {
    std::stop_source stop;
    std::atomic<bool> done{false};
    std::jthread later([&] {
      const auto end = std::chrono::steady_clock::now() + patience;
      while (!done && std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(milliseconds(1));
      stop.request_stop();
    });
    const auto taken = queue.Take(stop.get_token());
    done = true;
    return taken;
  };
  // Due after `wait` of the clock, and not a millisecond before.
  const auto due_after = [&](milliseconds wait) {
    queue.Retry(Key("a"));
    clock.Advance(wait - milliseconds(1));
    if (take(milliseconds(10))) return false;
    clock.Advance(milliseconds(1));
    const auto taken = take(milliseconds(5000));
    queue.Done(Key("a"));
    return taken == Key("a");
  };
  for (const int wait : {20, 40, 80, 160, 320, 640, 1000, 1000})
    EXPECT_TRUE(due_after(milliseconds(wait))) << wait;
  queue.Forget(Key("a"));
  EXPECT_TRUE(due_after(milliseconds(20)));
}

TEST(WorkQueue, StopEndsAWait) {
  const base::SystemClock clock;
  WorkQueue queue(clock);
  queue.AddAfter(Key("a"), milliseconds(60'000));
  std::stop_source stop;
  std::jthread later([&] { stop.request_stop(); });
  EXPECT_EQ(queue.Take(stop.get_token()), std::nullopt);
}

}  // namespace
}  // namespace sless::jobs
