#include "server/jobs/run_worker.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <thread>

#include "client/api/function.h"
#include "client/base/testing/result_matchers.h"
#include "server/jobs/run_state.h"
#include "server/jobs/testing/fake_invoker.h"
#include "server/store/memory/memory_store.h"
#include "server/store/testing/hooked_store.h"
#include "server/store/typed.h"

namespace sless::jobs {
namespace {

using base::Code;
using std::chrono::milliseconds;
using testing::HasSubstr;

bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 1000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

class RunWorkerTest : public testing::Test {
 protected:
  void SetUp() override { MakeFunction("f", 1, "Ready"); }
  void TearDown() override {
    if (worker_) worker_->Stop(base::Deadline::After(clock_, milliseconds(0)));
  }

  void MakeFunction(const std::string& name, int64_t revision, const std::string& phase) {
    api::Function function;
    function.metadata.ns = "default";
    function.metadata.name = name;
    function.status.revision = revision;
    function.status.phase = phase;
    function.status.observed_generation = 1;
    if (phase == "Failed")
      function.status.failure = api::Failure{.reason = "BuildFailed", .message = "no such package"};
    ASSERT_THAT(store::CreateTyped(*store_, function), base::IsOk());
  }
  void MakeRun(const std::string& name, int64_t attempts = 1,
               const std::function<void(api::Run&)>& change = {}) {
    api::Run run;
    run.metadata.ns = "default";
    run.metadata.name = name;
    run.spec = {.owner_kind = "Job",
                .owner = "j",
                .function = "f",
                .event_json = "\"" + name + "\"",
                .run_id = 1,
                .max_attempts = attempts};
    if (change) change(run);
    ASSERT_THAT(store::CreateTyped(*store_, run), base::IsOk());
  }
  api::Run Get(const std::string& name) {
    return store::GetTyped<api::Run>(*store_, "default", name).value_or(api::Run{});
  }
  bool AskToEnd(const std::string& name) {
    return store::Mutate<api::Run>(*store_, "default", name,
                                   [&](api::Run& run) {
                                     jobs::AskToEnd(run, "no more", clock_.Now());
                                     return base::Ok();
                                   })
        .has_value();
  }
  /// What was due when this was called has had its turn once this returned true: a run that is made
  /// now, put off `turns` times by backoff, then succeeds. Not while calls are held.
  bool TurnsPass(int turns) {
    auto left = std::make_shared<std::atomic<int>>(turns);
    invoker_.Answers([left](const auto&) -> base::Result<gateway::EventResult> {
      if ((*left)-- > 0) return base::Err(Code::kUnavailable, "no replica");
      return gateway::EventResult{"1", {}, 1, 1};
    });
    MakeRun("later.1");
    return Reaches("later.1", "Succeeded");
  }
  bool Reaches(const std::string& name, const std::string& phase) {
    return Eventually([&] { return Get(name).status.phase == phase; });
  }
  void Start(const std::string& instance = "me", milliseconds backoff = milliseconds(1),
             std::chrono::seconds limit = std::chrono::seconds(600)) {
    worker_ = std::make_unique<RunWorker>(
        RunWorker::Deps{*store_, invoker_, clock_, log_, metrics_},
        RunWorker::Options{8, instance, limit, backoff, milliseconds(50), milliseconds(20), settle_,
                           milliseconds(1)});
    ASSERT_THAT(worker_->Start(), base::IsOk());
  }

  base::SystemClock clock_;
  base::NullLogger log_;
  observe::Registry metrics_;
  std::unique_ptr<store::HookedStore> store_ =
      std::make_unique<store::HookedStore>(store::MakeMemoryStore(clock_));
  FakeInvoker invoker_;
  milliseconds settle_{1};
  std::unique_ptr<RunWorker> worker_;
};

TEST_F(RunWorkerTest, RunsOnceAndRecords) {
  Start();
  MakeRun("j.1");
  ASSERT_TRUE(Reaches("j.1", "Succeeded"));
  const auto run = Get("j.1");
  EXPECT_EQ(run.status.attempt, 1);
  EXPECT_EQ(run.status.result_json, "{\"ok\":true}");
  EXPECT_EQ(run.status.log_tail, "a line");
  EXPECT_NE(run.status.started_at, "");
  EXPECT_NE(run.status.finished_at, "");
  ASSERT_EQ(invoker_.calls().size(), 1u);
  EXPECT_EQ(invoker_.calls()[0].request_id, run.status.request_id);
  EXPECT_EQ(invoker_.calls()[0].source, "job");
}

TEST_F(RunWorkerTest, TheEndIsRecordedHoweverLongTheStoreRefusesIt) {
  std::atomic<int> refused{0};
  invoker_.Answers([&](const auto&) -> base::Result<gateway::EventResult> {
    store_->BeforeWrite([&](const api::ObjectKey&) -> base::Status {
      if (++refused > 150) return base::Ok();
      return base::Err(Code::kUnavailable, "disk full");
    });
    return gateway::EventResult{.result_json = "1"};
  });
  Start();
  MakeRun("j.1");
  ASSERT_TRUE(Reaches("j.1", "Succeeded"));
  EXPECT_EQ(invoker_.calls().size(), 1u);
}

TEST_F(RunWorkerTest, AStoreThatRefusesTheEndDoesNotHoldUpAStop) {
  std::atomic<bool> ended{false};
  invoker_.Answers([&](const auto&) -> base::Result<gateway::EventResult> {
    store_->BeforeWrite([](const api::ObjectKey&) -> base::Status {
      return base::Err(Code::kUnavailable, "disk full");
    });
    ended = true;
    return gateway::EventResult{.result_json = "1"};
  });
  Start();
  MakeRun("j.1");
  ASSERT_TRUE(Eventually([&] { return ended.load(); }));
  worker_->Stop(base::Deadline::After(clock_, std::chrono::seconds(60)));
  EXPECT_EQ(Get("j.1").status.phase, "Running") << "the next server finds it interrupted";
}

TEST_F(RunWorkerTest, RetriesUntilTheAttemptsAreUsed) {
  invoker_.Answers([](const auto&) -> base::Result<gateway::EventResult> {
    base::Error error{Code::kFailedPrecondition,
                      "ValueError: no",
                      "",
                      "HandlerError",
                      {"handler.py", 7, {"tail"}}};
    return base::Err(error);
  });
  Start();
  MakeRun("j.1", 3);
  ASSERT_TRUE(Reaches("j.1", "Failed"));
  const auto run = Get("j.1");
  EXPECT_EQ(run.status.attempt, 3);
  EXPECT_EQ(run.status.failure->reason, "HandlerError");
  EXPECT_EQ(run.status.failure->line, 7);
  EXPECT_EQ(run.status.log_tail, "tail");
  // One more is asked for by raising maxAttempts, and only that.
  invoker_.Answers({});
  ASSERT_THAT(store::Mutate<api::Run>(*store_, "default", "j.1",
                                      [](api::Run& r) {
                                        r.spec.max_attempts = 4;
                                        return base::Ok();
                                      }),
              base::IsOk());
  ASSERT_TRUE(Reaches("j.1", "Succeeded"));
  EXPECT_EQ(Get("j.1").status.attempt, 4);
  EXPECT_EQ(invoker_.calls().size(), 4u);
}

TEST_F(RunWorkerTest, AMissingFunctionFailsAtOnceWhateverAttemptsAreLeft) {
  Start();
  MakeRun("j.1", 5, [](api::Run& run) { run.spec.function = "nobody"; });
  ASSERT_TRUE(Reaches("j.1", "Failed"));
  EXPECT_THAT(Get("j.1").status.failure->message,
              HasSubstr("function \"nobody\" does not exist in namespace \"default\""));
  EXPECT_EQ(Get("j.1").status.attempt, 1);
  ASSERT_TRUE(TurnsPass(4)) << "a second attempt would have come in between";
  EXPECT_EQ(Get("j.1").status.phase, "Failed");
  EXPECT_EQ(Get("j.1").status.attempt, 1);
  for (const auto& call : invoker_.calls()) EXPECT_EQ(call.function, "f");
}

TEST_F(RunWorkerTest, AFunctionThatFailedFailsTheRunWithItsReason) {
  MakeFunction("broken", 0, "Failed");
  Start();
  MakeRun("j.1", 1, [](api::Run& run) { run.spec.function = "broken"; });
  ASSERT_TRUE(Reaches("j.1", "Failed"));
  EXPECT_THAT(Get("j.1").status.failure->message, HasSubstr("no such package"));
}

TEST_F(RunWorkerTest, WaitsForAFunctionThatIsBeingBuilt) {
  MakeFunction("slow", 0, "Building");
  Start();
  MakeRun("j.1", 1, [](api::Run& run) { run.spec.function = "slow"; });
  ASSERT_TRUE(TurnsPass(4));
  EXPECT_EQ(Get("j.1").status.phase, "Pending");
  EXPECT_EQ(Get("j.1").status.attempt, 0);
  ASSERT_THAT(store::MutateStatus<api::Function>(*store_, "default", "slow",
                                                 [](api::Function& f) {
                                                   f.status.revision = 1;
                                                   f.status.phase = "Ready";
                                                   return base::Ok();
                                                 }),
              base::IsOk());
  EXPECT_TRUE(Reaches("j.1", "Succeeded"));
}

TEST_F(RunWorkerTest, WaitsNotForEver) {
  MakeFunction("slow", 0, "Building");
  Start("me", milliseconds(1), std::chrono::seconds(0));
  MakeRun("j.1", 1, [](api::Run& run) { run.spec.function = "slow"; });
  ASSERT_TRUE(Reaches("j.1", "Failed"));
  EXPECT_EQ(Get("j.1").status.failure->reason, "FunctionNotReady");
  EXPECT_TRUE(Eventually([&] {
    return metrics_.Text().find("sless_runs_total{owner=\"Job\",result=\"FunctionNotReady\"} 1") !=
           std::string::npos;
  }));
}

TEST_F(RunWorkerTest, ACallThatDidNotBeginCostsNoAttempt) {
  std::atomic<int> calls{0};
  invoker_.Answers([&](const auto&) -> base::Result<gateway::EventResult> {
    if (++calls < 3) return base::Err(Code::kUnavailable, "no replica");
    return gateway::EventResult{"1", {}, 1, 1};
  });
  Start();
  MakeRun("j.1");
  ASSERT_TRUE(Reaches("j.1", "Succeeded"));
  EXPECT_EQ(Get("j.1").status.attempt, 1);
  EXPECT_EQ(calls, 3);
}

TEST_F(RunWorkerTest, ARunOfADeadServerCountsAsInterrupted) {
  const auto running = [](api::Run& run) {
    run.status.phase = "Running";
    run.status.server = "dead";
    run.status.attempt = 1;
  };
  MakeRun("j.1", 1, running);
  MakeRun("k.1", 2, running);
  Start();
  ASSERT_TRUE(Reaches("j.1", "Failed"));
  EXPECT_EQ(Get("j.1").status.failure->reason, "Interrupted");
  EXPECT_THAT(Get("j.1").status.failure->message, HasSubstr("slessd stopped while attempt 1 ran"));
  ASSERT_TRUE(Reaches("k.1", "Succeeded"));
  EXPECT_EQ(Get("k.1").status.attempt, 2);
}

TEST_F(RunWorkerTest, DeletingARunEndsItsCall) {
  invoker_.Hold(true);
  Start();
  MakeRun("j.1");
  ASSERT_TRUE(Eventually([&] { return invoker_.inside() == 1; }));
  ASSERT_THAT(store_->Delete(store::KeyOf<api::Run>("default", "j.1"), std::nullopt), base::IsOk());
  EXPECT_TRUE(Eventually([&] { return invoker_.inside() == 0; }));
}

TEST_F(RunWorkerTest, ACancelledRunIsFailedOnlyWhenItsCallHasEnded) {
  invoker_.Hold(true);
  invoker_.Linger(true);
  Start();
  MakeRun("j.1", 5);
  ASSERT_TRUE(Eventually([&] { return invoker_.inside() == 1; }));
  ASSERT_TRUE(AskToEnd("j.1"));
  worker_->Cancel(store::KeyOf<api::Run>("default", "j.1"));
  MakeRun("later.1");
  ASSERT_TRUE(Eventually([&] { return invoker_.inside() == 2; })) << "what came before it was seen";
  EXPECT_EQ(Get("j.1").status.phase, "Running");
  invoker_.Linger(false);
  ASSERT_TRUE(Reaches("j.1", "Failed"));
  const auto run = Get("j.1");
  EXPECT_EQ(run.status.failure->reason, "Cancelled");
  EXPECT_EQ(run.status.failure->message, "no more");
  EXPECT_EQ(run.status.attempt, 1);
  EXPECT_TRUE(run.metadata.annotations.empty());
  EXPECT_THAT(metrics_.Text(), HasSubstr("sless_runs_total{owner=\"Job\",result=\"Cancelled\"} 1"));
}

TEST_F(RunWorkerTest, ACancelledRunThatEndedWellStaysSucceeded) {
  invoker_.Hold(true);
  Start();
  MakeRun("j.1");
  ASSERT_TRUE(Eventually([&] { return invoker_.inside() == 1; }));
  ASSERT_TRUE(AskToEnd("j.1"));  // its call ends before Cancel reaches it
  invoker_.Hold(false);
  ASSERT_TRUE(Reaches("j.1", "Succeeded"));
  EXPECT_TRUE(Get("j.1").metadata.annotations.empty());
}

TEST_F(RunWorkerTest, ACancelledRunOfADeadServerGetsNoFurtherAttempt) {
  MakeRun("j.1", 5, [](api::Run& run) {
    run.status.phase = "Running";
    run.status.server = "dead";
    run.status.attempt = 1;
    jobs::AskToEnd(run, "no more", {});
  });
  Start();
  ASSERT_TRUE(Reaches("j.1", "Failed"));
  EXPECT_EQ(Get("j.1").status.failure->reason, "Cancelled");
  EXPECT_EQ(Get("j.1").status.attempt, 1);
  EXPECT_TRUE(invoker_.calls().empty());
}

TEST_F(RunWorkerTest, TheCallsOfADeadServerGetTimeToEnd) {
  settle_ = milliseconds(300);
  MakeRun("j.1", 2, [](api::Run& run) {
    run.status.phase = "Running";
    run.status.server = "dead";
    run.status.attempt = 1;
  });
  const auto began = clock_.Steady();
  Start();
  ASSERT_TRUE(Reaches("j.1", "Succeeded"));
  EXPECT_GE(clock_.Steady() - began, milliseconds(300));
  EXPECT_THAT(metrics_.Text(),
              HasSubstr("sless_runs_total{owner=\"Job\",result=\"Interrupted\"} 1"));
}

TEST_F(RunWorkerTest, StopEndsCallsAtTheDeadlineAndRecordsThem) {
  invoker_.Hold(true);
  Start();
  MakeRun("j.1");
  ASSERT_TRUE(Eventually([&] { return invoker_.inside() == 1; }));
  worker_->Stop(base::Deadline::After(clock_, milliseconds(50)));
  EXPECT_EQ(Get("j.1").status.phase, "Failed");
  EXPECT_EQ(Get("j.1").status.failure->reason, "Interrupted");
}

TEST_F(RunWorkerTest, StopLetsACallEnd) {
  invoker_.Hold(true);
  Start();
  MakeRun("j.1");
  ASSERT_TRUE(Eventually([&] { return invoker_.inside() == 1; }));
  std::jthread later([&] {
    std::this_thread::sleep_for(milliseconds(50));
    invoker_.Hold(false);
  });
  worker_->Stop(base::Deadline::After(clock_, milliseconds(5000)));
  EXPECT_EQ(Get("j.1").status.phase, "Succeeded");
}

TEST_F(RunWorkerTest, SerialRunsOfOneOwnerFollowEachOther) {
  invoker_.Hold(true);
  Start();
  for (int i = 1; i <= 3; ++i) {
    MakeRun("t." + std::to_string(i) + ".cron", 1, [&](api::Run& run) {
      run.spec = {.owner_kind = "Trigger",
                  .owner = "t",
                  .function = "f",
                  .event_json = "\"same\"",
                  .run_id = i,
                  .max_attempts = 1,
                  .serial = true};
    });
  }
  // One of another owner that comes after them gets inside: they had their chance.
  MakeRun("later.1");
  const auto inside = [&](const std::string& source) {
    const auto calls = invoker_.calls();
    return std::count_if(calls.begin(), calls.end(),
                         [&](const auto& call) { return call.source == source; });
  };
  ASSERT_TRUE(Eventually([&] { return inside("job") == 1 && inside("cron") > 0; }));
  EXPECT_EQ(inside("cron"), 1);
  invoker_.Hold(false);
  EXPECT_TRUE(Reaches("t.3.cron", "Succeeded"));
  EXPECT_EQ(invoker_.most_at_once(), 1);
  EXPECT_EQ(inside("cron"), 3);
}

TEST_F(RunWorkerTest, AFunctionWhoseRunsHangLeavesWorkersToOthers) {
  for (const char* name : {"g", "h"}) MakeFunction(name, 1, "Ready");
  invoker_.Hold(true);
  Start();
  const auto inside = [&](const std::string& function) {
    const auto calls = invoker_.calls();
    return std::count_if(calls.begin(), calls.end(),
                         [&](const auto& call) { return call.function == function; });
  };
  for (const std::string function : {"f", "g", "h"}) {
    for (int i = 0; i < 20; ++i)
      MakeRun(function + "." + std::to_string(i), 1,
              [&](api::Run& run) { run.spec.function = function; });
    // Of 8 workers: half, then half of the rest, and so on.
    const auto share = function == "f" ? 4 : function == "g" ? 2 : 1;
    ASSERT_TRUE(Eventually([&] { return inside(function) == share; })) << function;
  }
  // One that needs no call ends after them: all of theirs had their chance.
  MakeRun("later.1", 1, [](api::Run& run) { run.spec.function = "nobody"; });
  ASSERT_TRUE(Reaches("later.1", "Failed"));
  EXPECT_EQ(inside("f"), 4);
  EXPECT_EQ(inside("g"), 2);
  EXPECT_EQ(inside("h"), 1);
  EXPECT_EQ(worker_->Running(), 7u);
  EXPECT_EQ(Get("f.19").status.phase, "Pending");
  invoker_.Hold(false);
  for (const std::string function : {"f", "g", "h"}) {
    for (int i = 0; i < 20; ++i)
      EXPECT_TRUE(Reaches(function + "." + std::to_string(i), "Succeeded"));
  }
  EXPECT_EQ(invoker_.calls().size(), 60u);
}

TEST_F(RunWorkerTest, ManyRunsEachOnceUnderConcurrentWrites) {
  Start();
  std::vector<std::jthread> writers;
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&, w] {
      for (int i = 0; i < 25; ++i) MakeRun("r" + std::to_string(w) + "." + std::to_string(i));
    });
  }
  writers.clear();
  for (int w = 0; w < 4; ++w) {
    for (int i = 0; i < 25; ++i)
      ASSERT_TRUE(Reaches("r" + std::to_string(w) + "." + std::to_string(i), "Succeeded"));
  }
  EXPECT_EQ(invoker_.calls().size(), 100u);
  EXPECT_EQ(invoker_.most_at_once(), 1);
}

TEST(RunState, AResultThatIsTooLargeFails) {
  api::Run run;
  run.spec.max_attempts = 3;
  MarkStarted(run, "me", "r", base::TimePoint());
  MarkFinished(run, gateway::EventResult{std::string(kMaxResultBytes + 1, '1'), {}, 1, 1},
               base::TimePoint());
  EXPECT_EQ(run.status.phase, "Failed");
  EXPECT_EQ(run.status.failure->reason, "ResultTooLarge");
  EXPECT_EQ(run.status.result_json, "");
  EXPECT_EQ(NextStep(run, "me"), RunStep::kNothing);
}

}  // namespace
}  // namespace sless::jobs
