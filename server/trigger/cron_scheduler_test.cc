#include "server/trigger/cron_scheduler.h"

#include <gmock/gmock.h>

#include <functional>
#include <thread>

#include "client/base/testing/fake_clock.h"
#include "client/base/testing/result_matchers.h"
#include "server/domain/job_lifecycle.h"
#include "server/store/memory/memory_store.h"
#include "server/store/typed.h"

namespace sless::trigger {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;

class CronSchedulerTest : public testing::Test {
 protected:
  // The clock begins at 2026-01-01T00:00:00Z; a trigger is made 30 s later.
  void SetUp() override { clock_.Advance(seconds(30)); }

  api::Trigger Make(const std::string& overlap = "skip", const std::string& misfire = "skip",
                    const std::string& schedule = "* * * * *") {
    api::Trigger trigger;
    trigger.metadata.ns = "default";
    trigger.metadata.name = "t";
    trigger.spec.function = "f";
    trigger.spec.type = "cron";
    trigger.spec.cron = api::CronSpec{.schedule = schedule,
                                      .timezone = "UTC",
                                      .payload = "{\"a\":1}",
                                      .overlap = overlap,
                                      .misfire = misfire};
    return store::CreateTyped(*store_, trigger).value();
  }
  api::Trigger Get() { return store::GetTyped<api::Trigger>(*store_, "default", "t").value(); }
  std::vector<api::Run> Runs() {
    return store::ListTyped<api::Run>(*store_, "default", "t.").value();
  }
  void End(const std::string& name) {
    ASSERT_THAT(store::MutateStatus<api::Run>(*store_, "default", name,
                                              [](api::Run& run) {
                                                run.status.phase = "Succeeded";
                                                return base::Ok();
                                              }),
                base::IsOk());
  }
  void EndAll() {
    for (const auto& run : Runs()) End(run.metadata.name);
  }
  /// A new process that finds what the store holds, after `down`.
  void Restart(std::chrono::nanoseconds down) {
    clock_.Advance(down);
    scheduler_ =
        std::make_unique<CronScheduler>(CronScheduler::Deps{*store_, clock_, log_, metrics_});
    auto trigger = Get();
    trigger.status.observed_generation = trigger.metadata.generation;
    ASSERT_THAT(scheduler_->Set(trigger), base::IsOk());
    scheduler_->Tick();
  }

  base::FakeClock clock_;
  base::NullLogger log_;
  observe::Registry metrics_;
  std::unique_ptr<store::ObjectStore> store_ = store::MakeMemoryStore(clock_);
  std::unique_ptr<CronScheduler> scheduler_ =
      std::make_unique<CronScheduler>(CronScheduler::Deps{*store_, clock_, log_, metrics_});
};

TEST_F(CronSchedulerTest, FiresOnceAtThePlannedTime) {
  ASSERT_THAT(scheduler_->Set(Make()), base::IsOk());
  EXPECT_EQ(scheduler_->Tick(), *base::ParseTime("2026-01-01T00:01:00Z"));
  EXPECT_TRUE(Runs().empty());
  clock_.Advance(seconds(31));
  EXPECT_EQ(scheduler_->Tick(), *base::ParseTime("2026-01-01T00:02:00Z"));
  scheduler_->Tick();
  ASSERT_EQ(Runs().size(), 1u);
  EXPECT_EQ(Runs()[0].metadata.name, "t.1767225660.cron");
  EXPECT_EQ(Runs()[0].spec.event_json, "{\"a\":1}");
  EXPECT_EQ(Runs()[0].spec.function, "f");
  EXPECT_EQ(Get().status.last_fire, "2026-01-01T00:01:00.000Z");
  EXPECT_EQ(Get().status.next_runs.size(), 5u);
  EXPECT_EQ(Get().status.next_runs[0], "2026-01-01T00:02:00.000Z");
}

TEST_F(CronSchedulerTest, OverlapSkipCounts) {
  ASSERT_THAT(scheduler_->Set(Make("skip")), base::IsOk());
  for (int i = 0; i < 3; ++i) {
    clock_.Advance(minutes(1));
    scheduler_->Tick();
  }
  EXPECT_EQ(Runs().size(), 1u);
  EXPECT_EQ(Get().status.skipped, 2);
  EndAll();
  clock_.Advance(minutes(1));
  scheduler_->Tick();
  EXPECT_EQ(Runs().size(), 2u);
}

TEST_F(CronSchedulerTest, OverlapQueueKeepsOneWaiting) {
  ASSERT_THAT(scheduler_->Set(Make("queue")), base::IsOk());
  for (int i = 0; i < 4; ++i) {
    clock_.Advance(minutes(1));
    scheduler_->Tick();
  }
  ASSERT_EQ(Runs().size(), 2u);
  EXPECT_TRUE(Runs()[0].spec.serial);
  EXPECT_EQ(Get().status.skipped, 2);
}

TEST_F(CronSchedulerTest, OverlapAllowRunsAll) {
  ASSERT_THAT(scheduler_->Set(Make("allow")), base::IsOk());
  for (int i = 0; i < 4; ++i) {
    clock_.Advance(minutes(1));
    scheduler_->Tick();
  }
  EXPECT_EQ(Runs().size(), 4u);
  EXPECT_FALSE(Runs()[0].spec.serial);
}

struct Misfire {
  const char* name;
  const char* policy;
  size_t runs;
  int64_t skipped;
};
class CronMisfire : public CronSchedulerTest, public testing::WithParamInterface<Misfire> {};
TEST_P(CronMisfire, AfterFourMissedTimes) {
  ASSERT_THAT(scheduler_->Set(Make("skip", GetParam().policy)), base::IsOk());
  clock_.Advance(minutes(1));
  scheduler_->Tick();
  EndAll();
  ASSERT_EQ(Runs().size(), 1u);
  Restart(minutes(4));
  EXPECT_EQ(Runs().size(), 1 + GetParam().runs);
  EXPECT_EQ(Get().status.skipped, GetParam().skipped);
  EXPECT_EQ(Get().status.last_fire, "2026-01-01T00:05:00.000Z");
  Restart(seconds(0));
  EXPECT_EQ(Runs().size(), 1 + GetParam().runs);
  EXPECT_EQ(Get().status.skipped, GetParam().skipped);
}
INSTANTIATE_TEST_SUITE_P(Policies, CronMisfire,
                         testing::Values(Misfire{"Skip", "skip", 0, 4},
                                         Misfire{"Once", "once", 1, 3},
                                         Misfire{"All", "all", 4, 0}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(CronSchedulerTest, MisfireAllIsBounded) {
  ASSERT_THAT(scheduler_->Set(Make("allow", "all")), base::IsOk());
  Restart(std::chrono::hours(48));
  EXPECT_EQ(Runs().size(), CronScheduler::kMaxCatchUp);
  EXPECT_TRUE(Runs()[0].spec.serial);
}

TEST_F(CronSchedulerTest, ACrashBetweenRunAndLastFireNeitherLosesNorDoubles) {
  for (const auto* policy : {"skip", "all"}) {
    SCOPED_TRACE(policy);
    if (std::string(policy) == "all") {
      ASSERT_THAT(store_->Delete(store::KeyOf<api::Trigger>("default", "t"), std::nullopt),
                  base::IsOk());
    }
    ASSERT_THAT(scheduler_->Set(Make("allow", policy)), base::IsOk());
    clock_.Advance(minutes(1));
    scheduler_->Tick();
    const auto runs = Runs().size();
    const auto skipped = Get().status.skipped;
    ASSERT_THAT(store::MutateStatus<api::Trigger>(*store_, "default", "t",
                                                  [](api::Trigger& trigger) {
                                                    trigger.status.last_fire.clear();
                                                    return base::Ok();
                                                  }),
                base::IsOk());
    Restart(seconds(1));
    EXPECT_EQ(Runs().size(), runs);
    EXPECT_EQ(Get().status.skipped, skipped);
  }
}

TEST_F(CronSchedulerTest, ADisabledTriggerDoesNotFireAndEnablingMakesUpForNothing) {
  ASSERT_THAT(scheduler_->Set(Make("allow", "all")), base::IsOk());
  const auto enable = [&](bool on) {
    return store::Mutate<api::Trigger>(*store_, "default", "t",
                                       [&](api::Trigger& trigger) {
                                         trigger.spec.enabled = on;
                                         return base::Ok();
                                       })
        .value();
  };
  // The reconciler has not removed it yet: it must not fire all the same.
  enable(false);
  clock_.Advance(minutes(1));
  scheduler_->Tick();
  EXPECT_TRUE(Runs().empty());
  scheduler_->Remove(store::KeyOf<api::Trigger>("default", "t"));
  clock_.Advance(minutes(10));
  ASSERT_THAT(scheduler_->Set(enable(true)), base::IsOk());
  scheduler_->Tick();
  EXPECT_TRUE(Runs().empty());
  clock_.Advance(minutes(1));
  scheduler_->Tick();
  EXPECT_EQ(Runs().size(), 1u);
}

TEST_F(CronSchedulerTest, HistoryIsBounded) {
  ASSERT_THAT(scheduler_->Set(Make("allow")), base::IsOk());
  for (int i = 0; i < 30; ++i) {
    clock_.Advance(minutes(1));
    scheduler_->Tick();
    EndAll();
  }
  const auto runs = Runs();
  EXPECT_LE(runs.size(), CronScheduler::kKeepRuns + 1);
  EXPECT_EQ(runs.back().spec.run_id, 1767225600 + 30 * 60);
}

TEST_F(CronSchedulerTest, ASleepingMachineIsAMisfire) {
  ASSERT_THAT(scheduler_->Set(Make("allow", "skip")), base::IsOk());
  scheduler_->Tick();
  clock_.Advance(minutes(5) + seconds(10));
  scheduler_->Tick();
  EXPECT_EQ(Runs().size(), 1u);  // the one of half a minute ago is on time
  EXPECT_EQ(Get().status.skipped, 4);
}

/// Writes the spec; Set is the reconciler's to call.
class CronChange : public CronSchedulerTest {
 protected:
  api::Trigger Change(const std::function<void(api::Trigger&)>& change) {
    return store::Mutate<api::Trigger>(*store_, "default", "t",
                                       [&](api::Trigger& trigger) {
                                         change(trigger);
                                         return base::Ok();
                                       })
        .value();
  }
  api::Trigger Payload(const std::string& payload) {
    return Change([&](api::Trigger& trigger) { trigger.spec.cron->payload = payload; });
  }
  const api::ObjectKey key_ = store::KeyOf<api::Trigger>("default", "t");
};

TEST_F(CronChange, JustAfterTheTimeFiresOnce) {
  for (const bool tick_first : {true, false}) {
    SCOPED_TRACE(tick_first);
    if (!tick_first) {
      ASSERT_THAT(store_->Delete(key_, std::nullopt), base::IsOk());
      for (const auto& run : Runs())
        ASSERT_THAT(store_->Delete(store::KeyOf<api::Run>("default", run.metadata.name), {}),
                    base::IsOk());
    }
    ASSERT_THAT(scheduler_->Set(Make("allow")), base::IsOk());
    scheduler_->Tick();
    clock_.Advance(seconds(30) + std::chrono::milliseconds(20));
    const auto changed = Payload("{\"new\":1}");
    if (tick_first) {
      scheduler_->Tick();
      EXPECT_TRUE(Runs().empty());  // not before the new spec is known
    }
    ASSERT_THAT(scheduler_->Set(changed), base::IsOk());
    scheduler_->Tick();
    scheduler_->Tick();
    ASSERT_EQ(Runs().size(), 1u);
    EXPECT_EQ(Runs()[0].spec.event_json, "{\"new\":1}");
    EXPECT_EQ(Get().status.skipped, 0);
    clock_.Advance(minutes(1));
    scheduler_->Tick();
    EXPECT_EQ(Runs().size(), 2u);
    clock_.Advance(seconds(30) - std::chrono::milliseconds(20));
  }
}

TEST_F(CronChange, JustBeforeTheTimeFiresOnce) {
  ASSERT_THAT(scheduler_->Set(Make("allow")), base::IsOk());
  scheduler_->Tick();
  clock_.Advance(seconds(30) - std::chrono::milliseconds(10));
  const auto changed = Payload("{}");
  clock_.Advance(std::chrono::milliseconds(15));
  scheduler_->Tick();
  ASSERT_THAT(scheduler_->Set(changed), base::IsOk());
  scheduler_->Tick();
  EXPECT_EQ(Runs().size(), 1u);
}

TEST_F(CronChange, OfTheScheduleOrTwiceLosesNothingThatWasDue) {
  ASSERT_THAT(scheduler_->Set(Make("allow")), base::IsOk());
  scheduler_->Tick();
  clock_.Advance(seconds(30));
  ASSERT_THAT(scheduler_->Set(Payload("{}")), base::IsOk());
  const auto next = scheduler_->Set(
      Change([](api::Trigger& trigger) { trigger.spec.cron->schedule = "30 * * * *"; }));
  ASSERT_THAT(next, base::IsOk());
  EXPECT_EQ(next->at(0), "2026-01-01T00:30:00.000Z");
  EXPECT_EQ(scheduler_->Tick(), *base::ParseTime("2026-01-01T00:30:00Z"));
  ASSERT_EQ(Runs().size(), 1u);
  EXPECT_EQ(Runs()[0].metadata.name, "t.1767225660.cron");
}

TEST_F(CronChange, SwitchedOffCountsWhatWasDueAsSkipped) {
  ASSERT_THAT(scheduler_->Set(Make("allow")), base::IsOk());
  scheduler_->Tick();
  clock_.Advance(seconds(40));
  Change([](api::Trigger& trigger) { trigger.spec.enabled = false; });
  clock_.Advance(minutes(1));  // not skipped: it was off
  scheduler_->Remove(key_);
  scheduler_->Tick();
  scheduler_->Tick();
  EXPECT_TRUE(Runs().empty());
  EXPECT_EQ(Get().status.skipped, 1);
}

TEST_F(CronSchedulerTest, GoesOnWhenTheClockWasAheadOnce) {
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    if (!restart) {
      ASSERT_THAT(scheduler_->Set(Make("allow")), base::IsOk());
    }
    scheduler_->Tick();
    const auto before = Runs().size();
    clock_.Advance(std::chrono::hours(2));
    scheduler_->Tick();
    EXPECT_EQ(Runs().size(), before + 1);
    clock_.Advance(-std::chrono::hours(2));
    if (restart) {
      Restart(seconds(0));
    } else {
      scheduler_->Tick();
    }
    const auto next = Get().status.next_runs;
    ASSERT_EQ(next.size(), 5u);
    for (int i = 0; i < 3; ++i) {
      clock_.Advance(minutes(1));
      scheduler_->Tick();
      EXPECT_EQ(Runs().size(), before + 2 + static_cast<size_t>(i));
      const auto minute = base::FormatTime(clock_.Now()).substr(0, 17) + "00.000Z";
      EXPECT_EQ(Get().status.last_fire, minute);
      EXPECT_EQ(restart ? minute : next[static_cast<size_t>(i)], minute);
    }
    EndAll();
  }
}

TEST_F(CronSchedulerTest, NoTimeFiresTwiceWhenTheClockGoesBack) {
  ASSERT_THAT(scheduler_->Set(Make("allow")), base::IsOk());
  for (int i = 0; i < 30; ++i) {  // more than what is kept of the runs
    clock_.Advance(minutes(1));
    scheduler_->Tick();
    EndAll();
  }
  const auto newest = Runs().back().spec.run_id;
  clock_.Advance(-minutes(25));
  EXPECT_EQ(scheduler_->Tick(), *base::ParseTime("2026-01-01T00:31:00Z"));
  EXPECT_EQ(Get().status.next_runs.at(0), "2026-01-01T00:31:00.000Z");
  for (int i = 0; i < 25; ++i) {
    clock_.Advance(minutes(1));
    scheduler_->Tick();
    ASSERT_EQ(Runs().back().spec.run_id, newest);
    for (const auto& run : Runs()) ASSERT_TRUE(domain::HasEnded(run)) << run.metadata.name;
  }
  clock_.Advance(minutes(1));
  scheduler_->Tick();
  EXPECT_EQ(Runs().back().spec.run_id, newest + 60);
  EXPECT_EQ(Get().status.skipped, 0);
}

// The clock is ahead while a trigger is written or fires, and is set right.
class CronClockWasAhead : public CronChange {
 protected:
  static constexpr std::chrono::hours kAhead{5 * 24};
  void TakeUp(const api::Trigger& trigger) {
    ASSERT_THAT(scheduler_->Set(trigger), base::IsOk());
    scheduler_->Tick();
  }
  /// Times of which a run was made, by minute of the first hour; -1: another time.
  std::vector<int64_t> Minutes() {
    std::vector<int64_t> minutes;
    for (const auto& run : Runs()) {
      const auto minute = (run.spec.run_id - 1767225600) / 60;
      minutes.push_back(minute >= 0 && minute < 60 ? minute : -1);
    }
    return minutes;
  }
};

TEST_F(CronClockWasAhead, WhatIsMissedAfterwardsCounts) {
  const struct {
    const char* policy;
    std::vector<int64_t> minutes;
    int64_t skipped;
  } cases[] = {{"all", {1, 2, 3, 4}, 0}, {"once", {1, 4}, 2}, {"skip", {1}, 3}};
  for (const auto& [policy, minutes_of_runs, skipped] : cases) {
    for (const bool fires_first : {true, false}) {
      SCOPED_TRACE(std::string(policy) + (fires_first ? ", fires first" : ""));
      clock_.Advance(kAhead);
      TakeUp(Make("allow", policy));
      clock_.Advance(-kAhead);
      scheduler_->Tick();
      auto want = minutes_of_runs;
      auto want_skipped = skipped;
      if (fires_first) {
        clock_.Advance(minutes(1));
        scheduler_->Tick();
        EXPECT_THAT(Minutes(), ElementsAre(1));
        Restart(minutes(3));
      } else {
        Restart(minutes(4));
        if (std::string(policy) != "all") {
          want.erase(want.begin());
          ++want_skipped;
        }
      }
      EXPECT_EQ(Minutes(), want);
      EXPECT_EQ(Get().status.skipped, want_skipped);
      Restart(seconds(0));
      EXPECT_EQ(Minutes(), want);
      EXPECT_EQ(Get().status.skipped, want_skipped);
      for (const auto& run : Runs())
        ASSERT_THAT(store_->Delete(store::KeyOf<api::Run>("default", run.metadata.name), {}),
                    base::IsOk());
      ASSERT_THAT(store_->Delete(key_, std::nullopt), base::IsOk());
      scheduler_->Remove(key_);
      clock_.Advance(-minutes(4));
    }
  }
}

TEST_F(CronClockWasAhead, ALastFireInTheFutureLosesNothingEither) {
  TakeUp(Make("allow", "once"));
  clock_.Advance(std::chrono::hours(20));
  scheduler_->Tick();
  EndAll();
  clock_.Advance(-std::chrono::hours(20));
  scheduler_->Tick();
  EXPECT_THAT(Minutes(), ElementsAre(-1, -1));  // the newest missed one and one in time
  const auto skipped = Get().status.skipped;
  Restart(minutes(2));
  EXPECT_THAT(Minutes(), ElementsAre(2, -1, -1));
  EXPECT_EQ(Get().status.skipped, skipped + 1);
}

TEST_F(CronClockWasAhead, NothingOfBeforeAChangeIsMadeUpFor) {
  TakeUp(Make("allow", "all", "1 0 * * *"));
  clock_.Advance(minutes(1));
  scheduler_->Tick();
  for (const bool seen : {true, false}) {
    SCOPED_TRACE(seen);
    clock_.Advance(minutes(10) + std::chrono::hours(20));
    const auto next = scheduler_->Set(Change([&](api::Trigger& trigger) {
      trigger.spec.cron->schedule = seen ? "*/2 * * * *" : "* * * * *";
    }));
    ASSERT_THAT(next, base::IsOk());
    ASSERT_THAT(store::MutateStatus<api::Trigger>(*store_, "default", "t",
                                                  [&](api::Trigger& trigger) {
                                                    trigger.status.next_runs = *next;
                                                    return base::Ok();
                                                  }),
                base::IsOk());  // as the reconciler does
    clock_.Advance(-std::chrono::hours(20));
    if (seen) scheduler_->Tick();
    const auto before = Runs().size();
    Restart(seconds(0));
    EXPECT_EQ(Runs().size(), before);
    clock_.Advance(minutes(seen ? 2 : 1));
    scheduler_->Tick();
    EXPECT_GT(Runs().size(), before);
    EndAll();
  }
}

// The clock jumps ahead at 00:01:30 over hours that are left out, and is set right. The newest of
// them is where the scheduler had looked up to.
class CronLeftOut : public CronClockWasAhead {
 protected:
  void JumpAhead() {
    TakeUp(Make("allow", "skip", "0 * * * *"));
    clock_.Advance(minutes(1));
    scheduler_->Tick();
    clock_.Advance(kJump);
    scheduler_->Tick();
    ASSERT_TRUE(Runs().empty());
    ASSERT_EQ(Get().status.skipped, 5);  // 1 to 5 o'clock
  }
  /// The clock as it goes on, seen a bit before and after each hour; up to before `hour`.
  void WalkTo(int hour) {
    for (int i = 1; i <= hour; ++i) {
      const auto at = Hour(i);
      if (clock_.Now() < at - seconds(1)) clock_.Advance(at - seconds(1) - clock_.Now());
      scheduler_->Tick();
      if (i < hour) clock_.Advance(seconds(1));
      scheduler_->Tick();
    }
  }
  static base::TimePoint Hour(int hour) {
    return *base::ParseTime("2026-01-01T00:00:00Z") + std::chrono::hours(hour);
  }
  std::vector<int64_t> Hours() {
    std::vector<int64_t> hours;
    for (const auto& run : Runs()) hours.push_back((run.spec.run_id - 1767225600) / 3600);
    return hours;
  }
  static constexpr minutes kJump{5 * 60 + 10};
};

TEST_F(CronLeftOut, FiresWhenItsTimeComes) {
  enum { kWatched, kRestartAhead, kRestartAfter };
  for (const auto how : {kWatched, kRestartAhead, kRestartAfter}) {
    SCOPED_TRACE(how);
    JumpAhead();
    clock_.Advance(-kJump);
    if (how != kRestartAhead) scheduler_->Tick();
    if (how != kWatched) Restart(seconds(0));
    WalkTo(8);
    EXPECT_THAT(Hours(), ElementsAre(1, 2, 3, 4, 5, 6, 7));
    EXPECT_EQ(Get().status.skipped, 5);
    for (const auto& run : Runs())
      ASSERT_THAT(store_->Delete(store::KeyOf<api::Run>("default", run.metadata.name), {}),
                  base::IsOk());
    ASSERT_THAT(store_->Delete(key_, std::nullopt), base::IsOk());
    scheduler_->Remove(key_);
    clock_.Advance(Hour(0) + seconds(30) - clock_.Now());
    scheduler_ =
        std::make_unique<CronScheduler>(CronScheduler::Deps{*store_, clock_, log_, metrics_});
  }
}

TEST_F(CronLeftOut, FiresWhereAChangeComesFirst) {
  JumpAhead();
  clock_.Advance(-kJump);
  scheduler_->Tick();
  WalkTo(5);
  clock_.Advance(std::chrono::milliseconds(1020));
  ASSERT_THAT(scheduler_->Set(Payload("{}")), base::IsOk());
  scheduler_->Tick();
  EXPECT_THAT(Hours(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(Get().status.skipped, 5);
}

TEST_F(CronLeftOut, CountsWhereItIsSwitchedOffFirst) {
  JumpAhead();
  clock_.Advance(-kJump);
  scheduler_->Tick();
  WalkTo(5);
  clock_.Advance(std::chrono::milliseconds(1020));
  Change([](api::Trigger& trigger) { trigger.spec.enabled = false; });
  scheduler_->Remove(key_);
  scheduler_->Tick();
  EXPECT_THAT(Hours(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(Get().status.skipped, 6);
}

TEST_F(CronLeftOut, CountsOnceWhereTheClockWasBehind) {
  JumpAhead();
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    clock_.Advance(-kJump);
    if (restart) {
      Restart(seconds(0));
    } else {
      scheduler_->Tick();
    }
    clock_.Advance(seconds(1));
    scheduler_->Tick();
    clock_.Advance(kJump);
    scheduler_->Tick();
    EXPECT_TRUE(Runs().empty());
    EXPECT_EQ(Get().status.skipped, 5);
  }
}

TEST_F(CronClockWasAhead, TheNewestTimeThatFiredDoesNotFireAgain) {
  TakeUp(Make("skip", "skip"));
  clock_.Advance(minutes(1));
  scheduler_->Tick();
  clock_.Advance(minutes(1));
  scheduler_->Tick();  // the first one runs: skipped
  for (const bool run_is_kept : {true, false}) {
    SCOPED_TRACE(run_is_kept);
    clock_.Advance(-minutes(1));
    scheduler_->Tick();
    if (!run_is_kept) {
      for (const auto& run : Runs())
        ASSERT_THAT(store_->Delete(store::KeyOf<api::Run>("default", run.metadata.name), {}),
                    base::IsOk());
    }
    for (int i = 0; i < 60; ++i) {
      clock_.Advance(seconds(1));
      scheduler_->Tick();
    }
    EXPECT_EQ(Runs().size(), run_is_kept ? 1u : 0u);
    EXPECT_EQ(Get().status.skipped, 1);
  }
}

// The clock goes back for a moment. "Behind" is two hours, or 1970.
class CronClockWasBehind : public CronClockWasAhead,
                           public testing::WithParamInterface<std::chrono::hours> {
 protected:
  void FireOnce() {
    TakeUp(Make("allow", "all"));
    clock_.Advance(minutes(1));
    scheduler_->Tick();
    ASSERT_EQ(Runs().size(), 1u);
  }
  void SetUp() override {
    clock_.Advance(std::chrono::hours(24 * 365));
    CronClockWasAhead::SetUp();
  }
  void Behind() {
    clock_.Advance(-GetParam());
    scheduler_->Tick();
    clock_.Advance(std::chrono::milliseconds(1500));
    scheduler_->Tick();
  }
  void Right(std::chrono::nanoseconds late = {}) {
    clock_.Advance(GetParam() + late);
    scheduler_->Tick();
    scheduler_->Tick();
  }
};

TEST_P(CronClockWasBehind, NothingOfBeforeFiresOrIsSkipped) {
  for (const auto* policy : {"all", "once", "skip"}) {
    for (const bool fires_first : {true, false}) {
      SCOPED_TRACE(std::string(policy) + (fires_first ? ", fires first" : ""));
      TakeUp(Make("allow", policy));
      if (fires_first) clock_.Advance(minutes(1));
      scheduler_->Tick();
      const auto before = Runs().size();
      Behind();
      Right();
      EXPECT_EQ(Runs().size(), before);
      EXPECT_EQ(Get().status.skipped, 0);
      clock_.Advance(minutes(1));
      scheduler_->Tick();
      EXPECT_EQ(Runs().size(), before + 1) << "goes on";
      ASSERT_THAT(store_->Delete(key_, std::nullopt), base::IsOk());
      scheduler_->Remove(key_);
      scheduler_->Tick();
    }
  }
}

TEST_P(CronClockWasBehind, AfterItWasAheadTheSame) {
  clock_.Advance(kAhead);
  TakeUp(Make("allow", "all"));
  clock_.Advance(minutes(1));  // fires ahead
  scheduler_->Tick();
  clock_.Advance(-kAhead);
  scheduler_->Tick();
  for (const bool restart : {false, true}) {
    SCOPED_TRACE(restart);
    clock_.Advance(minutes(1));
    scheduler_->Tick();
    const auto before = Runs().size();
    Behind();
    if (restart) Restart(seconds(0));
    Right();
    EXPECT_EQ(Runs().size(), before);
    if (restart) Restart(seconds(0));
    EXPECT_EQ(Runs().size(), before);
    EXPECT_EQ(Get().status.skipped, 0);
  }
}

TEST_P(CronClockWasBehind, WhatIsMissedSinceCounts) {
  ASSERT_NO_FATAL_FAILURE(FireOnce());
  Behind();
  Right(minutes(3));
  EXPECT_EQ(Runs().size(), 4u);
}

TEST_P(CronClockWasBehind, ARestartMeanwhileChangesNothing) {
  ASSERT_NO_FATAL_FAILURE(FireOnce());
  clock_.Advance(-GetParam());
  Restart(seconds(0));
  Right();
  EXPECT_EQ(Runs().size(), 1u);
  clock_.Advance(minutes(1));
  scheduler_->Tick();
  EXPECT_EQ(Runs().size(), 2u);
}

TEST_P(CronClockWasBehind, SoDoesAChangeOrASwitchMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(FireOnce());
  const auto enable = [&](bool on) {
    return Change([&](api::Trigger& trigger) { trigger.spec.enabled = on; });
  };
  Behind();
  TakeUp(Payload("{}"));
  Right();
  EXPECT_EQ(Runs().size(), 1u);
  enable(false);
  scheduler_->Remove(key_);
  clock_.Advance(minutes(5));
  scheduler_->Tick();
  Behind();
  TakeUp(enable(true));
  Right();
  EXPECT_EQ(Runs().size(), 1u);
  EXPECT_EQ(Get().status.skipped, 0);
  clock_.Advance(minutes(1));
  scheduler_->Tick();
  EXPECT_EQ(Runs().size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(Spans, CronClockWasBehind,
                         testing::Values(std::chrono::hours(2), std::chrono::hours(57 * 365 * 24)));

TEST_F(CronSchedulerTest, ABadScheduleIsAnError) {
  EXPECT_FALSE(scheduler_->Set(Make("skip", "skip", "61 * * * *")).has_value());
}

TEST(CronSchedulerThread, FiresByItself) {
  base::SystemClock clock;
  base::NullLogger log;
  observe::Registry metrics;
  // The store's clock lies half a minute back, so that the last full minute lies after the
  // trigger's birth.
  base::FakeClock past(clock.Now() - std::chrono::seconds(50));
  const auto store = store::MakeMemoryStore(past);
  CronScheduler scheduler({*store, past, log, metrics});
  scheduler.Start();
  api::Trigger trigger;
  trigger.metadata.ns = "default";
  trigger.metadata.name = "t";
  trigger.spec.type = "cron";
  trigger.spec.cron = api::CronSpec{.schedule = "* * * * *"};
  ASSERT_THAT(scheduler.Set(store::CreateTyped(*store, trigger).value()), base::IsOk());
  past.Advance(std::chrono::seconds(60));
  bool fired = false;
  for (int i = 0; i < 400 && !fired; ++i) {
    fired = !store::ListTyped<api::Run>(*store, "default").value().empty();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(fired);
  scheduler.Stop();
}

}  // namespace
}  // namespace sless::trigger
