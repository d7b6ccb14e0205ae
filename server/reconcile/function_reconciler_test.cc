#include "server/reconcile/function_reconciler.h"

#include "client/base/strings.h"
#include "server/auth/authenticator.h"
#include "server/gateway/gateway.h"
#include "server/gateway/testing/fake_runtime.h"
#include "server/http/server.h"
#include "server/reconcile/testing/world.h"

namespace sless::reconcile {
namespace {

using api::Function;
using base::Code;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FunctionReconcilerTest : public testing::Test {
 protected:
  void SetUp() override { world_.Start(); }
  /// A restart after which the layers of the code "aaaa" are gone and builds (of `hash`) fail.
  void RestartWithoutLayers(base::Error failure, std::string hash = "") {
    world_.Stop();
    std::filesystem::remove_all(world_.dir + "/aaaa");
    world_.builder.Fails(std::move(failure), std::move(hash));
    world_.Start();
  }
  bool NoteSays(const std::string& word) {
    return Eventually([&] { return base::Contains(world_.Get<Function>("f").status.note, word); });
  }
  World world_;
};

TEST_F(FunctionReconcilerTest, BuildsPreparesAndPublishes) {
  world_.PutFunction("f", [](Function& f) { f.spec.environment = {{"A", "1"}}; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  const auto f = world_.Get<Function>("f");
  EXPECT_EQ(f.status.revision, 1);
  EXPECT_EQ(f.status.serving, f.spec);
  EXPECT_NE(f.status.last_built_at, "");
  EXPECT_EQ(f.status.invoke_url, "http://sless.test/v1/namespaces/default/functions/f/invoke");
  const auto route = world_.serving->Route("f");
  ASSERT_TRUE(route && route->revision);
  EXPECT_EQ(route->revision->revision, 1);
  EXPECT_EQ(route->spec.environment, f.spec.environment);
  EXPECT_THAT(route->http, IsEmpty());
  EXPECT_EQ(world_.logs.Read("default", "f", {}).value().size(), 1u);
}

TEST_F(FunctionReconcilerTest, AChangeOfConfigurationBuildsNothing) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  const auto before = world_.Get<Function>("f");
  world_.PutFunction("f", [](Function& f) { f.spec.environment = {{"A", "2"}}; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  const auto after = world_.Get<Function>("f");
  EXPECT_EQ(after.status.revision, 2);
  EXPECT_EQ(after.status.last_built_at, before.status.last_built_at);
  EXPECT_EQ(world_.builder.built().size(), 1u);
}

TEST_F(FunctionReconcilerTest, AChangeOfScalingLabelsOrPathMakesNoRevision) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  const int prepares = world_.serving->prepares();
  world_.PutFunction("f", [](Function& f) {
    f.spec.min_replicas = 2;
    f.spec.labels = {{"a", "b"}};
    f.spec.source.path = "elsewhere";
  });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 1);
  EXPECT_EQ(world_.Get<Function>("f").status.serving->source.path, "elsewhere");
  EXPECT_EQ(world_.serving->Route("f")->scaling.min_replicas, 2);
  EXPECT_EQ(world_.serving->prepares(), prepares);
}

TEST_F(FunctionReconcilerTest, AFailedBuildLeavesTheOldRevisionServing) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  base::Error error{Code::kFailedPrecondition,
                    "No matching distribution found for nosuch",
                    "",
                    "BuildFailed",
                    {"requirements.txt", 1, {"l"}}};
  world_.builder.Fails(error);
  world_.PutFunction("f", [](Function& f) { f.spec.source.hash = "sha256:bbbb"; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  const auto f = world_.Get<Function>("f");
  EXPECT_EQ(f.status.failure->reason, "BuildFailed");
  EXPECT_EQ(f.status.failure->file, "requirements.txt");
  EXPECT_EQ(f.status.revision, 1);
  EXPECT_EQ(f.status.latest_revision, 2);
  EXPECT_EQ(f.status.serving->source.hash, "sha256:aaaa");
  EXPECT_EQ(world_.serving->Route("f")->revision->revision, 1);
  // Not tried again by itself, nor after a restart.
  const auto built = world_.builder.built().size();
  world_.Stop();
  world_.Start();
  ASSERT_TRUE(Eventually([&] { return world_.controller->Settled(); }));
  EXPECT_EQ(world_.builder.built().size(), built);
  EXPECT_EQ(world_.Get<Function>("f").status.phase, "Failed");
  // Asked for once more: the same spec, another word in the annotation.
  world_.builder.Fails(std::nullopt);
  world_.PutFunction("f", [](Function& f) { f.metadata.annotations["sless.dev/retry"] = "1"; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.Get<Function>("f").status.serving->source.hash, "sha256:bbbb");
  EXPECT_EQ(world_.Get<Function>("f").status.observed_retry, "1")
      << "who waits for the further try knows it by that";
}

TEST_F(FunctionReconcilerTest, GoingBackToWhatServesNeedsNothing) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  world_.builder.Fails(base::Error{Code::kFailedPrecondition, "x", "", "BuildFailed", {}});
  world_.PutFunction("f", [](Function& f) { f.spec.source.hash = "sha256:bbbb"; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  world_.PutFunction("f", [](Function& f) { f.spec.source.hash = "sha256:aaaa"; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 1);
  EXPECT_FALSE(world_.Get<Function>("f").status.failure);
}

TEST_F(FunctionReconcilerTest, AFailedStartIsAbandonedAndSaysWhere) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  world_.serving->Answers([](const auto&, const auto&) {
    return gateway::Prepared{
        gateway::Readiness::kFailed,
        api::Failure{
            .reason = "StartFailed", .message = "SyntaxError", .file = "handler.py", .line = 3}};
  });
  world_.PutFunction("f", [](Function& f) { f.spec.memory_mb = 512; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  EXPECT_EQ(world_.Get<Function>("f").status.failure->line, 3);
  EXPECT_THAT(world_.serving->abandoned(), ElementsAre(2));
  EXPECT_EQ(world_.serving->Route("f")->revision->revision, 1);
}

TEST_F(FunctionReconcilerTest, TheSwitchWaitsForReadiness) {
  std::atomic<bool> ready{false};
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  world_.serving->Answers([&](const auto&, const auto&) {
    return gateway::Prepared{ready ? gateway::Readiness::kReady : gateway::Readiness::kStarting,
                             {}};
  });
  world_.PutFunction("f", [](Function& f) { f.spec.timeout_sec = 5; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Deploying"));
  EXPECT_EQ(world_.serving->Route("f")->revision->revision, 1);
  ready = true;
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.serving->Route("f")->revision->revision, 2);
}

TEST_F(FunctionReconcilerTest, AMachineWithoutRoomIsTriedAgain) {
  std::atomic<bool> room{false};
  world_.serving->Answers([&](const auto&, const auto&) {
    if (room) return gateway::Prepared{gateway::Readiness::kReady, {}};
    return gateway::Prepared{gateway::Readiness::kFailed,
                             api::Failure{.reason = "NoResources", .message = "fork: no room"}};
  });
  world_.PutFunction("f");
  ASSERT_TRUE(
      Eventually([&] { return base::Contains(world_.Get<Function>("f").status.note, "no room"); }));
  EXPECT_EQ(world_.Get<Function>("f").status.phase, "Deploying");
  room = true;
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.Get<Function>("f").status.note, "");
}

TEST_F(FunctionReconcilerTest, ASwitchThatCannotBeRecordedIsNotTakenBack) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  std::atomic<int> refused{0};
  world_.store->BeforeWrite([&](const api::ObjectKey& key) -> base::Status {
    if (key.kind != api::kKindFunction || world_.serving->Route("f")->revision->revision != 2)
      return base::Ok();
    ++refused;
    return base::Err(Code::kUnavailable, "disk full");
  });
  world_.PutFunction("f", [](Function& f) { f.spec.timeout_sec = 5; });
  ASSERT_TRUE(Eventually([&] { return refused >= 4; }));
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 1);
  world_.store->BeforeWrite({});
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  const auto f = world_.Get<Function>("f");
  EXPECT_EQ(f.status.revision, 2);
  EXPECT_EQ(f.status.serving, f.spec);
  EXPECT_THAT(world_.serving->published(), ElementsAre(0, 1, 2));
}

// A start for which the machine has no room, with the gateway that keeps failures until Abandon.
class RealGatewayTest : public testing::Test {
 protected:
  void TearDown() override {
    world_.Stop();
    gateway_->Stop();
  }
  void Start() {
    world_.gateway = gateway_.get();
    world_.Start();
  }
  class NoAuth final : public auth::Authenticator {
    base::Result<auth::Caller> Check(std::string_view) override { return auth::Caller{}; }
  };

  World world_;
  http::IoPool io_{1};
  NoAuth auth_;
  gateway::FakeRuntime runtime_;
  std::unique_ptr<gateway::Gateway> gateway_ =
      gateway::MakeGateway({io_, runtime_, auth_, world_.metrics, world_.clock, world_.log}, {});
};

TEST_F(RealGatewayTest, AMachineWithoutRoomIsTriedAgain) {
  Start();
  runtime_.no_room = true;
  world_.PutFunction("f");
  ASSERT_TRUE(Eventually([&] { return runtime_.starts >= 2; })) << "it is started again";
  EXPECT_EQ(world_.Get<Function>("f").status.phase, "Deploying");
  EXPECT_TRUE(
      Eventually([&] { return base::Contains(world_.Get<Function>("f").status.note, "no room"); }));
  runtime_.no_room = false;
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.Get<Function>("f").status.note, "");
  EXPECT_EQ(runtime_.Running({"default", "f", 1}), 1);
}

TEST_F(RealGatewayTest, AMachineWithoutRoomToTheEndFailsAndSaysSo) {
  world_.options.start_limit = std::chrono::seconds(1);
  Start();
  runtime_.no_room = true;
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  EXPECT_EQ(world_.Get<Function>("f").status.failure->reason, "NoResources");
  EXPECT_EQ(runtime_.starts, 2);
}

TEST_F(RealGatewayTest, AFailedStartIsFinalAndTheOldRevisionServes) {
  Start();
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  runtime_.fail_start = true;
  world_.PutFunction("f", [](Function& f) { f.spec.memory_mb = 512; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  EXPECT_EQ(world_.Get<Function>("f").status.failure->line, 1);
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 1);
  EXPECT_EQ(runtime_.starts, 2);
  EXPECT_TRUE(Eventually([&] { return runtime_.Observe({"default", "f", 2}).empty(); }));
}

TEST_F(FunctionReconcilerTest, NotReadyInTimeFails) {
  world_.Stop();
  world_.options.start_limit = std::chrono::seconds(0);
  world_.Start();
  world_.serving->Answers([](const auto&, const auto&) {
    return gateway::Prepared{gateway::Readiness::kStarting, {}};
  });
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  EXPECT_EQ(world_.Get<Function>("f").status.failure->reason, "StartTimeout");
}

TEST_F(FunctionReconcilerTest, ANewerSpecStopsTheBuildOfTheOlder) {
  world_.builder.Hold(true);
  world_.PutFunction("f");
  ASSERT_TRUE(Eventually([&] { return world_.builder.inside() == 1; }));
  world_.PutFunction("f", [](Function& f) { f.spec.source.hash = "sha256:bbbb"; });
  ASSERT_TRUE(Eventually([&] { return world_.builder.stopped() == 1; }));
  world_.builder.Hold(false);
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.Get<Function>("f").status.serving->source.hash, "sha256:bbbb");
  EXPECT_THAT(world_.builder.built(), ElementsAre("sha256:bbbb"));
  // What nobody wants any more leaves no Revision object.
  EXPECT_TRUE(Eventually([&] {
    return store::ListTyped<Revision>(*world_.store, "default", "f.").value().size() == 1;
  }));
}

TEST_F(FunctionReconcilerTest, TroubleOfTheServerIsTriedAgain) {
  world_.builder.Fails(base::Error{Code::kUnavailable, "disk full", "", "", {}});
  world_.PutFunction("f");
  ASSERT_TRUE(NoteSays("disk full"));
  EXPECT_EQ(world_.Get<Function>("f").status.phase, "Building");
  EXPECT_LE(world_.builder.built().size(), 3u);  // with backoff, not in a loop
  world_.builder.Fails(std::nullopt);
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.Get<Function>("f").status.note, "");
}

TEST_F(FunctionReconcilerTest, MissingSourceSaysSo) {
  world_.artifacts.missing = {"sha256:aaaa"};
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  EXPECT_EQ(world_.Get<Function>("f").status.failure->reason, "SourceMissing");
  EXPECT_THAT(world_.serving->Route("f")->not_ready_reason, HasSubstr("the function failed"));
}

TEST_F(FunctionReconcilerTest, DamagedSourceIsRemovedSoThatAnUploadIsTaken) {
  world_.builder.Fails(base::Error{Code::kInvalidArgument, "not a zip", "", "BadArchive", {}});
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  EXPECT_EQ(world_.Get<Function>("f").status.failure->reason, "SourceMissing");
  EXPECT_THAT(world_.Get<Function>("f").status.failure->message, HasSubstr("was damaged"));
  EXPECT_THAT(world_.artifacts.removed, ElementsAre("sha256:aaaa"));
}

TEST_F(FunctionReconcilerTest, ARestartServesTheSameRevisionAgain) {
  world_.PutFunction("f");
  world_.PutFunction("off", [](Function& f) { f.spec.replicas = 0; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  ASSERT_TRUE(world_.Reaches<Function>("off", "Ready"));
  ASSERT_TRUE(Eventually([&] { return world_.controller->Depth() == 0; }));
  const auto before = world_.Get<Function>("f");
  const auto built = world_.builder.built().size();
  world_.Stop();
  world_.Start();
  ASSERT_TRUE(Eventually([&] { return world_.controller->Settled(); }));
  EXPECT_EQ(world_.serving->Route("f")->revision->revision, 1);
  EXPECT_TRUE(world_.serving->Route("off")->switched_off);
  EXPECT_EQ(world_.Get<Function>("f").metadata.resource_version, before.metadata.resource_version);
  EXPECT_EQ(world_.builder.built().size(), built);
  EXPECT_EQ(world_.serving->prepares(), 0);
}

TEST_F(FunctionReconcilerTest, LostLayersAreMadeAgainAfterARestart) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  const auto before = world_.Get<Function>("f").status;
  world_.Stop();
  std::filesystem::remove_all(world_.dir + "/aaaa");
  world_.builder.Hold(true);
  world_.Start();
  ASSERT_TRUE(Eventually([&] { return world_.serving->Route("f").has_value(); }));
  EXPECT_FALSE(world_.serving->Route("f")->revision);
  EXPECT_THAT(world_.serving->Route("f")->not_ready_reason, HasSubstr("built again"));
  world_.builder.Hold(false);
  ASSERT_TRUE(Eventually([&] { return world_.serving->Route("f")->revision.has_value(); }));
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 1);
  EXPECT_EQ(world_.Get<Function>("f").status.last_built_at, before.last_built_at);
}

TEST_F(FunctionReconcilerTest, NewCodeDoesNotWaitForLayersOfTheOldAndNobodyTakesThoseForReady) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  world_.Stop();
  std::filesystem::remove_all(world_.dir + "/aaaa");
  world_.builder.Hold(true);
  world_.Start();
  ASSERT_TRUE(world_.Reaches<Function>("f", "Building"));
  world_.PutFunction("f", [](Function& f) { f.spec.source.hash = "sha256:bbbb"; });
  ASSERT_TRUE(Eventually([&] { return world_.builder.stopped() == 1; })) << "of the old";
  world_.builder.Hold(false);
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.serving->Route("f")->revision->revision, 2);
}

TEST_F(FunctionReconcilerTest, LayersThatCannotBeMadeAgainAreAFailureUntilTheyCan) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  RestartWithoutLayers(base::Error{Code::kFailedPrecondition, "gone", "", "SourceMissing", {}});
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  EXPECT_EQ(world_.Get<Function>("f").status.failure->reason, "SourceMissing");
  EXPECT_FALSE(world_.Get<Function>("f").status.serving);
  EXPECT_FALSE(world_.serving->Route("f")->revision);
  // The code was uploaded again, and another try is asked for.
  world_.builder.Fails(std::nullopt);
  world_.PutFunction("f", [](Function& f) { f.metadata.annotations["sless.dev/retry"] = "1"; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_TRUE(world_.Get<Function>("f").status.serving);
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 1);
  EXPECT_EQ(world_.serving->Route("f")->revision->revision, 1);
}

TEST_F(FunctionReconcilerTest, NewCodeIsBuiltAlthoughLayersOfTheOldCannotBe) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  RestartWithoutLayers(base::Error{Code::kFailedPrecondition, "gone", "", "SourceMissing", {}},
                       "sha256:aaaa");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  const auto built = world_.builder.built().size();
  world_.PutFunction("f", [](Function& f) { f.spec.source.hash = "sha256:bbbb"; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.serving->Route("f")->revision->revision, 2);
  // The new one once, and perhaps a try of the old one that was under way.
  EXPECT_LE(world_.builder.built().size(), built + 2);
}

TEST_F(FunctionReconcilerTest, LayersThatCannotBeMadeAgainForNowAreTriedWithWaits) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  const auto before = world_.builder.built().size();
  RestartWithoutLayers(base::Error{Code::kUnavailable, "disk full", "", "", {}});
  ASSERT_TRUE(NoteSays("disk full"));
  EXPECT_EQ(world_.Get<Function>("f").status.phase, "Deploying");
  EXPECT_LE(world_.builder.built().size(), before + 4) << "not one try after the other";
  world_.builder.Fails(std::nullopt);
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
}

TEST_F(FunctionReconcilerTest, LayersThatAreLostWhileTheyServeAreMadeAgain) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  std::filesystem::remove_all(world_.dir + "/aaaa");
  world_.PutFunction("f", [](Function& f) { f.spec.labels = {{"any", "change"}}; });
  ASSERT_TRUE(Eventually([&] { return std::filesystem::exists(world_.dir + "/aaaa"); }));
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 1);
  const auto built = world_.builder.built().size();

  // Its replicas may go on without the folder, so calls still go to them; but it is told.
  std::filesystem::remove_all(world_.dir + "/aaaa");
  world_.builder.Fails(base::Error{Code::kFailedPrecondition, "gone", "", "SourceMissing", {}});
  world_.PutFunction("f", [](Function& f) { f.spec.labels = {{"any", "other"}}; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  EXPECT_EQ(world_.Get<Function>("f").status.failure->reason, "SourceMissing");
  EXPECT_EQ(world_.serving->Route("f")->revision->revision, 1);
  EXPECT_EQ(world_.serving->published().back(), 1);
  EXPECT_TRUE(world_.Get<Function>("f").status.serving) << "it may";
  // Whatever calls for a look meanwhile, the next try waits.
  for (int i = 0; i < 20; ++i) {
    world_.PutFunction("f", [&](Function& f) { f.spec.labels = {{"any", std::to_string(i)}}; });
    ASSERT_TRUE(Eventually([&] {
      const auto f = world_.Get<Function>("f");
      return f.status.observed_generation == f.metadata.generation;
    }));
  }
  EXPECT_EQ(world_.builder.built().size(), built + 1);
}

TEST_F(FunctionReconcilerTest, WhatIsLostKeepsTheScalingThatItHad) {
  world_.PutFunction("f", [](Function& f) { f.spec.replicas = 0; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  world_.PutFunction("f", [](Function& f) {
    f.spec.replicas.reset();
    f.spec.min_replicas = 2;
  });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  world_.builder.Fails(base::Error{Code::kFailedPrecondition, "bad", "", "BuildFailed", {}});
  world_.PutFunction("f", [](Function& f) { f.spec.source.hash = "sha256:bbbb"; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  std::filesystem::remove_all(world_.dir + "/aaaa");
  world_.PutFunction("f", [](Function& f) { f.spec.labels = {{"any", "change"}}; });
  ASSERT_TRUE(Eventually([&] {
    const auto built = world_.builder.built();
    return std::count(built.begin(), built.end(), "sha256:aaaa") == 2;
  }));
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  EXPECT_EQ(world_.serving->Route("f")->scaling.min_replicas, 2);
  EXPECT_FALSE(world_.serving->Route("f")->switched_off);
}

TEST_F(FunctionReconcilerTest, ARetryLooksAtLayersThatAreThere) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  ASSERT_EQ(world_.builder.built().size(), 1u);
  const auto retry = [&](const std::string& value) {
    world_.PutFunction("f",
                       [&](Function& f) { f.metadata.annotations["sless.dev/retry"] = value; });
    return Eventually([&] { return world_.Get<Function>("f").status.observed_retry == value; });
  };
  ASSERT_TRUE(retry("1"));
  EXPECT_EQ(world_.builder.built().size(), 2u) << "of what serves";
  EXPECT_EQ(world_.Get<Function>("f").status.phase, "Ready");
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 1);

  // Not to be built, but they may be well.
  world_.builder.Fails(base::Error{Code::kFailedPrecondition, "gone", "", "SourceMissing", {}});
  ASSERT_TRUE(retry("2"));
  EXPECT_EQ(world_.Get<Function>("f").status.phase, "Ready");
  world_.builder.Fails(
      base::Error{Code::kFailedPrecondition, "away", "", "RegistryUnreachable", {}});
  ASSERT_TRUE(retry("2b"));
  EXPECT_EQ(world_.Get<Function>("f").status.phase, "Failed") << "the builder found them damaged";
  EXPECT_EQ(world_.serving->Route("f")->revision->revision, 1);
  world_.builder.Fails(std::nullopt);
  ASSERT_TRUE(retry("2c"));
  EXPECT_EQ(world_.Get<Function>("f").status.phase, "Ready");

  // Of a revision that did not start, with a configuration that builds nothing.
  world_.serving->Answers([](const runtime::RevisionKey&, const runtime::ReplicaSpec&) {
    return gateway::Prepared{
        gateway::Readiness::kFailed,
        api::Failure{.reason = "StartFailed", .message = "No module named 'x'"}};
  });
  world_.PutFunction("f", [](Function& f) { f.spec.environment = {{"A", "1"}}; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  const auto before = world_.builder.built().size();
  world_.serving->Answers({});
  world_.PutFunction("f", [](Function& f) { f.metadata.annotations["sless.dev/retry"] = "3"; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.builder.built().size(), before + 1);
}

TEST_F(FunctionReconcilerTest, LostLayersAreTriedAgainBesideAFailedRevisionToo) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  world_.builder.Fails(base::Error{Code::kFailedPrecondition, "bad code", "", "BuildFailed", {}});
  world_.PutFunction("f", [](Function& f) { f.spec.source.hash = "sha256:bbbb"; });
  ASSERT_TRUE(world_.Reaches<Function>("f", "Failed"));
  RestartWithoutLayers(base::Error{Code::kUnavailable, "disk full", "", "", {}});
  ASSERT_TRUE(NoteSays("disk full"));
  EXPECT_EQ(world_.Get<Function>("f").status.phase, "Failed");
  EXPECT_EQ(world_.Get<Function>("f").status.failure->reason, "BuildFailed");
  world_.builder.Fails(std::nullopt);
  ASSERT_TRUE(Eventually([&] {
    const auto route = world_.serving->Route("f");
    return route && route->revision && route->revision->revision == 1;
  })) << "long before the next look at everything";
  EXPECT_EQ(world_.Get<Function>("f").status.phase, "Failed");
}

TEST_F(FunctionReconcilerTest, LayersOfAnotherDataFolderAreNotUsed) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  const auto built = world_.builder.built().size();
  world_.Stop();
  world_.layers_dir = world_.dir + "/";
  // This is a copy, and the folder that it was made from still lies there.
  const World original;
  ASSERT_THAT(store::MutateStatus<Revision>(*world_.store, "default", "f.1",
                                            [&](Revision& revision) {
                                              revision.status.code_dir = original.dir;
                                              return base::Ok();
                                            }),
              base::IsOk());
  world_.Start();
  ASSERT_TRUE(Eventually([&] {
    const auto route = world_.serving->Route("f");
    return route && route->revision;
  }));
  EXPECT_EQ(world_.serving->Route("f")->spec.code_dir, world_.dir + "/aaaa");
  EXPECT_EQ(world_.builder.built().size(), built + 1);
}

TEST_F(FunctionReconcilerTest, ARestartInTheMiddleOfABuildGoesOn) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  world_.builder.Hold(true);
  world_.PutFunction("f", [](Function& f) { f.spec.source.hash = "sha256:bbbb"; });
  ASSERT_TRUE(Eventually([&] { return world_.builder.inside() == 1; }));
  world_.Stop();
  world_.builder.Hold(false);
  world_.Start();
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 2);
}

TEST_F(FunctionReconcilerTest, DeletionRemovesEverythingAndNumbersAreNotUsedAgain) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  world_.Delete<Function>("f");
  ASSERT_TRUE(world_.Gone<Function>("f"));
  EXPECT_TRUE(Eventually([&] { return !world_.serving->Route("f"); }));
  EXPECT_TRUE(store::ListTyped<Revision>(*world_.store, "default", "f.").value().empty());
  EXPECT_TRUE(world_.logs.Read("default", "f", {}).value().empty());
  EXPECT_EQ(world_.logs.removed("f"), 1);
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 2);
}

TEST(FunctionReconcilerMemory, NamesThatAreGoneAreForgotten) {
  World world;
  world.options.drained = std::chrono::milliseconds(0);
  world.Start();
  world.PutFunction("f");
  ASSERT_TRUE(world.Reaches<Function>("f", "Ready"));
  EXPECT_EQ(world.functions->Remembered(), 1u);
  world.Delete<Function>("f");
  ASSERT_TRUE(world.Gone<Function>("f"));
  // A trigger may name functions that never were.
  EXPECT_TRUE(Eventually([&] {
    world.controller->Put({"Function", "default", base::RandomHex(4)});
    return world.functions->Remembered() == 0;
  }));
}

TEST_F(FunctionReconcilerTest, StatusFollowsTheLoadAndThenIsQuiet) {
  world_.PutFunction("f");
  ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  world_.serving->Loads({.ready = 3, .restarts = 2, .note = "crash loop"});
  world_.controller->Put({"Function", "default", "f"});
  ASSERT_TRUE(Eventually([&] { return world_.Get<Function>("f").status.ready_replicas == 3; }));
  EXPECT_EQ(world_.Get<Function>("f").status.note, "crash loop");
  ASSERT_TRUE(Eventually([&] { return world_.controller->Depth() == 0; }));
  const auto version = world_.Get<Function>("f").metadata.resource_version;
  for (int i = 0; i < 5; ++i) world_.controller->Put({"Function", "default", "f"});
  ASSERT_TRUE(Eventually([&] { return world_.controller->Depth() == 0; }));
  EXPECT_EQ(world_.Get<Function>("f").metadata.resource_version, version);
}

TEST_F(FunctionReconcilerTest, OldRevisionsAreForgotten) {
  for (int i = 0; i < 10; ++i) {
    world_.PutFunction("f", [&](Function& f) { f.spec.timeout_sec = i + 1; });
    ASSERT_TRUE(world_.Reaches<Function>("f", "Ready"));
  }
  EXPECT_TRUE(Eventually([&] {
    return store::ListTyped<Revision>(*world_.store, "default", "f.").value().size() == 6;
  }));
  EXPECT_EQ(world_.Get<Function>("f").status.revision, 10);
}

}  // namespace
}  // namespace sless::reconcile
