#include "server/runtime/testing/runtime_conformance.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

#include "client/base/testing/result_matchers.h"

namespace sless::runtime {

using base::IsOk;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<RuntimeFactory> RuntimeDriver(RuntimeFactory make) { return {std::move(make)}; }

void RuntimeConformance::SetUp() {
  under_test_ = GetParam()();
  ASSERT_NE(under_test_, nullptr);
  runtime().OnChange(
      [this](const RevisionKey& key) { changes_.With([&](auto& seen) { ++seen[key]; }); });
}

void RuntimeConformance::TearDown() {
  if (under_test_) runtime().Shutdown(base::Deadline::After(clock_, seconds(10)));
}

std::set<std::string> RuntimeConformance::Ids(const RevisionKey& key, ReplicaState state) {
  std::set<std::string> ids;
  for (const auto& replica : runtime().Observe(key)) {
    if (replica.state == state) ids.insert(replica.id);
  }
  return ids;
}

bool RuntimeConformance::Eventually(const std::function<bool()>& done) {
  const auto deadline = base::Deadline::After(clock_, seconds(30));
  while (!done()) {
    if (deadline.Passed(clock_)) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

bool RuntimeConformance::EventuallyReady(const RevisionKey& key, size_t count) {
  return Eventually([&] {
    return Ids(key, ReplicaState::kReady).size() == count && runtime().Observe(key).size() == count;
  });
}

TEST_P(RuntimeConformance, UnknownRevisionHasNoReplicas) {
  EXPECT_TRUE(runtime().Observe(Key(7)).empty());
  runtime().Kill(Key(7), "nobody");
  EXPECT_THAT(runtime().Ensure(Key(7), under_test_->Good(), 0), IsOk());
  EXPECT_TRUE(runtime().Observe(Key(7)).empty());
}

TEST_P(RuntimeConformance, EnsureBringsReplicasToReady) {
  ASSERT_THAT(runtime().Ensure(Key(1), under_test_->Good(), 2), IsOk());
  ASSERT_TRUE(EventuallyReady(Key(1), 2));
  std::set<std::string> endpoints;
  for (const auto& replica : runtime().Observe(Key(1))) {
    EXPECT_FALSE(replica.failure);
    EXPECT_EQ(replica.restarts, 0);
    endpoints.insert(replica.endpoint);
  }
  EXPECT_EQ(endpoints.size(), 2u) << "each replica has an endpoint of its own";
  EXPECT_FALSE(endpoints.contains(""));
  EXPECT_GT(changes_.With([](auto& seen) { return seen[Key(1)]; }), 0) << "changes are reported";
}

TEST_P(RuntimeConformance, RepeatedEnsureChangesNothing) {
  const auto spec = under_test_->Good();
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 2), IsOk());
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 2), IsOk());
  ASSERT_TRUE(EventuallyReady(Key(1), 2));
  const auto before = Ids(Key(1), ReplicaState::kReady);
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 2), IsOk());
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(Ids(Key(1), ReplicaState::kReady), before);
}

TEST_P(RuntimeConformance, ScalesUpAndDownAndForgetsWhatNobodyWants) {
  const auto spec = under_test_->Good();
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 1), IsOk());
  ASSERT_TRUE(EventuallyReady(Key(1), 1));
  const auto first = Ids(Key(1), ReplicaState::kReady);
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 3), IsOk());
  ASSERT_TRUE(EventuallyReady(Key(1), 3));
  const auto grown = Ids(Key(1), ReplicaState::kReady);
  EXPECT_TRUE(std::includes(grown.begin(), grown.end(), first.begin(), first.end()))
      << "a ready replica is kept";
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 1), IsOk());
  ASSERT_TRUE(EventuallyReady(Key(1), 1));
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 0), IsOk());
  EXPECT_TRUE(Eventually([&] { return runtime().Observe(Key(1)).empty(); }));
}

TEST_P(RuntimeConformance, RetireStopsTheReplicaThatIsNamed) {
  const auto spec = under_test_->Good();
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 3), IsOk());
  ASSERT_TRUE(EventuallyReady(Key(1), 3));
  auto ids = Ids(Key(1), ReplicaState::kReady);
  const std::string idle = *std::next(ids.begin());
  ASSERT_THAT(runtime().Retire(Key(1), spec, 2, idle), IsOk());
  ASSERT_TRUE(EventuallyReady(Key(1), 2));
  ids.erase(idle);
  EXPECT_EQ(Ids(Key(1), ReplicaState::kReady), ids);
}

TEST_P(RuntimeConformance, KilledReplicaIsReplaced) {
  ASSERT_THAT(runtime().Ensure(Key(1), under_test_->Good(), 1), IsOk());
  ASSERT_TRUE(EventuallyReady(Key(1), 1));
  const auto before = runtime().Observe(Key(1)).front();
  runtime().Kill(Key(1), before.id);
  EXPECT_TRUE(Eventually([&] {
    const auto now = runtime().Observe(Key(1));
    return now.size() == 1 && now.front().state == ReplicaState::kReady &&
           (now.front().id != before.id || now.front().restarts > before.restarts);
  }));
}

TEST_P(RuntimeConformance, RevisionsLiveSideBySide) {
  const auto spec = under_test_->Good();
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 1), IsOk());
  ASSERT_THAT(runtime().Ensure(Key(2), spec, 1), IsOk());
  ASSERT_TRUE(EventuallyReady(Key(1), 1));
  ASSERT_TRUE(EventuallyReady(Key(2), 1));
  EXPECT_NE(Ids(Key(1), ReplicaState::kReady), Ids(Key(2), ReplicaState::kReady));
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 0), IsOk());
  EXPECT_TRUE(Eventually([&] { return runtime().Observe(Key(1)).empty(); }));
  EXPECT_EQ(Ids(Key(2), ReplicaState::kReady).size(), 1u);
}

TEST_P(RuntimeConformance, LayersAreInUseUntilTheLastReplicaIsGone) {
  const auto spec = under_test_->Good();
  const auto in_use = [&] { return runtime().LayersInUse().contains(spec.code_dir); };
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 1), IsOk());
  ASSERT_TRUE(EventuallyReady(Key(1), 1));
  EXPECT_TRUE(in_use());
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 0), IsOk());
  EXPECT_TRUE(Eventually([&] {
    if (in_use()) return false;
    EXPECT_TRUE(runtime().Observe(Key(1)).empty());
    return true;
  }));
}

TEST_P(RuntimeConformance, FailedStartIsToldAndTriedAgainLater) {
  ASSERT_THAT(runtime().Ensure(Key(1), under_test_->Broken(), 1), IsOk());
  ASSERT_TRUE(Eventually([&] { return !Ids(Key(1), ReplicaState::kFailed).empty(); }));
  const auto replica = runtime().Observe(Key(1)).front();
  ASSERT_TRUE(replica.failure);
  EXPECT_FALSE(replica.failure->reason.empty());
  EXPECT_FALSE(replica.failure->message.empty());
  EXPECT_NE(replica.next_start, base::SteadyPoint()) << "a next start is planned";
}

TEST_P(RuntimeConformance, ShutdownLeavesNothing) {
  const auto spec = under_test_->Good();
  ASSERT_THAT(runtime().Ensure(Key(1), spec, 2), IsOk());
  ASSERT_TRUE(EventuallyReady(Key(1), 2));
  runtime().Shutdown(base::Deadline::After(clock_, seconds(10)));
  EXPECT_TRUE(Ids(Key(1), ReplicaState::kReady).empty());
}

}  // namespace sless::runtime
