#include "server/reconcile/artifact_gc.h"

#include "server/gateway/testing/fake_runtime.h"
#include "server/reconcile/testing/world.h"

namespace sless::reconcile {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::UnorderedElementsAre;

TEST(ArtifactGc, RemovesOnlyOldCodeThatNothingRefersTo) {
  World world;
  world.Start();
  world.PutFunction("f");
  ASSERT_TRUE(world.Reaches<api::Function>("f", "Ready"));
  const auto now = world.clock.Now();
  world.artifacts.infos = {{"sha256:aaaa", 1, now - std::chrono::hours(5)},
                           {"sha256:old", 1, now - std::chrono::hours(5)},
                           {"sha256:young", 1, now - std::chrono::minutes(5)}};
  gateway::FakeRuntime runtime;
  ArtifactGc gc({*world.store, world.artifacts, world.builder, *world.builds, runtime, world.clock,
                 world.log});
  ASSERT_THAT(gc.CollectArtifacts(), base::IsOk());
  EXPECT_THAT(world.artifacts.removed, ElementsAre("sha256:old"));
  ASSERT_THAT(gc.CollectLayers(), base::IsOk());
  EXPECT_THAT(world.builder.in_use(), Contains(world.dir + "/aaaa"));
}

TEST(ArtifactGc, LayersOfReplicasThatStillDrainAreInUse) {
  World world;
  world.Start();
  gateway::FakeRuntime runtime;
  ASSERT_THAT(runtime.Ensure({"default", "deleted", 1}, {.code_dir = "/c", .deps_dir = "/d"}, 1),
              base::IsOk());
  ArtifactGc gc({*world.store, world.artifacts, world.builder, *world.builds, runtime, world.clock,
                 world.log});
  ASSERT_THAT(gc.CollectLayers(), base::IsOk());
  EXPECT_THAT(world.builder.in_use(), UnorderedElementsAre("/c", "/d"));
}

TEST(ArtifactGc, LayersAreLeftAloneWhileABuildRuns) {
  World world;
  world.Start();
  world.builder.Hold(true);
  world.PutFunction("f");
  ASSERT_TRUE(Eventually([&] { return world.builder.inside() == 1; }));
  gateway::FakeRuntime runtime;
  ArtifactGc gc({*world.store, world.artifacts, world.builder, *world.builds, runtime, world.clock,
                 world.log});
  ASSERT_THAT(gc.CollectLayers(), base::IsOk());
  EXPECT_TRUE(world.builder.in_use().empty());
  world.builder.Hold(false);
  ASSERT_TRUE(world.Reaches<api::Function>("f", "Ready"));
}

}  // namespace
}  // namespace sless::reconcile
