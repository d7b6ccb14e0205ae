#include "server/reconcile/function_plan.h"

#include <gmock/gmock.h>

namespace sless::reconcile {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Revision Rev(int64_t number, const std::string& input, const std::string& phase,
             int64_t generation = 1) {
  Revision revision;
  revision.spec = {number, input, generation, {}};
  revision.status.phase = phase;
  revision.status.built_at = "built " + std::to_string(number);
  return revision;
}

struct Case {
  const char* name;
  int64_t serving;
  std::vector<Revision> revisions;
  FunctionDecision want;
};
class Decide : public testing::TestWithParam<Case> {};
TEST_P(Decide, Step) {
  api::Function function;
  function.metadata.generation = 2;
  function.status.revision = GetParam().serving;
  EXPECT_EQ(DecideFunction(function, "new", GetParam().revisions, 1), GetParam().want);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, Decide,
    testing::Values(Case{"Nothing", 0, {}, {FunctionStep::kCreate, 1}},
                    Case{"ServesAlready", 1, {Rev(1, "new", "Ready")}, {FunctionStep::kServe, 1}},
                    Case{"ServesAlreadyThoughANewerFailed",
                         1,
                         {Rev(1, "new", "Ready"), Rev(2, "old", "Failed")},
                         {FunctionStep::kServe, 1}},
                    Case{"Changed", 1, {Rev(1, "old", "Ready")}, {FunctionStep::kCreate, 2}},
                    Case{"Pending",
                         1,
                         {Rev(1, "old", "Ready"), Rev(2, "new", "Pending")},
                         {FunctionStep::kBuild, 2}},
                    Case{"Built",
                         1,
                         {Rev(1, "old", "Ready"), Rev(2, "new", "Built")},
                         {FunctionStep::kPrepare, 2}},
                    Case{"ReadyButNotYetInTheStatus",
                         1,
                         {Rev(1, "old", "Ready"), Rev(2, "new", "Ready")},
                         {FunctionStep::kPrepare, 2}},
                    Case{"FailedForThisGeneration",
                         1,
                         {Rev(1, "old", "Ready"), Rev(2, "new", "Failed", 2)},
                         {FunctionStep::kFailed, 2}},
                    Case{"FailedForAnEarlierGeneration",
                         1,
                         {Rev(1, "old", "Ready"), Rev(2, "new", "Failed", 1)},
                         {FunctionStep::kCreate, 3}},
                    Case{"ChangedWhilePending",
                         1,
                         {Rev(1, "old", "Ready"), Rev(2, "other", "Pending")},
                         {FunctionStep::kCreate, 3}},
                    Case{"BackToAnOlderOneIsANewNumber",
                         2,
                         {Rev(1, "new", "Ready"), Rev(2, "old", "Ready")},
                         {FunctionStep::kCreate, 3}},
                    Case{"ServingObjectLost", 4, {}, {FunctionStep::kCreate, 5}},
                    Case{"TenIsAboveNine",
                         9,
                         {Rev(10, "new", "Pending"), Rev(9, "old", "Ready")},
                         {FunctionStep::kBuild, 10}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Decide, ARetryAnnotationAsksOnceMore) {
  api::Function function;
  function.metadata.generation = 1;
  auto failed = Rev(1, "new", "Failed");
  EXPECT_EQ(DecideFunction(function, "new", {failed}, 1).step, FunctionStep::kFailed);
  function.metadata.annotations[std::string(api::kRetryAnnotation)] = "a";
  EXPECT_EQ(DecideFunction(function, "new", {failed}, 1),
            (FunctionDecision{FunctionStep::kCreate, 2}));
  failed.status.retry = "a";
  EXPECT_EQ(DecideFunction(function, "new", {failed}, 1).step, FunctionStep::kFailed);
}

TEST(BuiltAt, StaysForTheSameCode) {
  EXPECT_EQ(BuiltAt({}, {Rev(1, "a", "Ready")}, "now"), "built 1");
  EXPECT_EQ(BuiltAt({}, {Rev(1, "a", "Failed")}, "now"), "now");
  api::FunctionSpec other;
  other.code_hash = "x";
  EXPECT_EQ(BuiltAt(other, {Rev(1, "a", "Ready")}, "now"), "now");
}

TEST(Scaling, FollowsReplicasAndTriggers) {
  api::FunctionSpec spec;
  spec.min_replicas = 1;
  spec.max_replicas = 4;
  EXPECT_EQ(ScalingFor(spec, {}), (gateway::Scaling{1, 4, std::chrono::seconds(300)}));
  api::Trigger on, off;
  off.spec.enabled = false;
  EXPECT_EQ(ScalingFor(spec, {on, off}).min_replicas, 1);
  EXPECT_EQ(ScalingFor(spec, {off, off}), (gateway::Scaling{0, 4, std::chrono::seconds(1)}));
  spec.replicas = 2;
  EXPECT_EQ(ScalingFor(spec, {on}), (gateway::Scaling{2, 2, std::chrono::seconds(300)}));
  EXPECT_EQ(ScalingFor(spec, {off}), (gateway::Scaling{0, 2, std::chrono::seconds(1)}));
}

TEST(Superseded, KeepsServingTargetAndTheNewestEnded) {
  const std::vector<Revision> revisions{Rev(1, "", "Ready"),   Rev(2, "", "Failed"),
                                        Rev(3, "", "Pending"), Rev(4, "", "Ready"),
                                        Rev(5, "", "Ready"),   Rev(6, "", "Pending")};
  EXPECT_THAT(Superseded(revisions, 5, 6, 2), ElementsAre(3, 1));
  EXPECT_THAT(Superseded(revisions, 1, 3, 9), ElementsAre(6));
  EXPECT_THAT(Superseded({}, 0, 0, 2), IsEmpty());
}

}  // namespace
}  // namespace sless::reconcile
