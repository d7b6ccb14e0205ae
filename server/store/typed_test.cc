#include "server/store/typed.h"

#include <thread>

#include "client/base/testing/fake_clock.h"
#include "client/base/testing/result_matchers.h"
#include "server/store/memory/memory_store.h"

namespace sless::store {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using testing::_;
using testing::HasSubstr;

class TypedTest : public testing::Test {
 protected:
  static api::Job Job(const std::string& name) {
    api::Job job;
    job.metadata.ns = "x";
    job.metadata.name = name;
    job.spec.function = "hello";
    job.spec.run_id = 3;
    return job;
  }
  base::FakeClock clock_;
  std::unique_ptr<ObjectStore> store_ = MakeMemoryStore(clock_);
};

TEST_F(TypedTest, RoundTrip) {
  auto job = Job("a");
  job.status.failure = api::Failure{"HandlerError", "boom", "handler.py", 3, {"line"}};
  const auto created = CreateTyped(*store_, job);
  ASSERT_THAT(created, IsOk());
  const auto read = GetTyped<api::Job>(*store_, "x", "a");
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->spec, job.spec);
  EXPECT_EQ(read->status, job.status);
  EXPECT_EQ(read->metadata, created->metadata);
  EXPECT_EQ(read->metadata.generation, 1);
  EXPECT_THAT(GetTyped<api::Function>(*store_, "x", "a"), IsError(Code::kNotFound, _));
}

TEST_F(TypedTest, ListReadsAllPages) {
  for (int i = 0; i < 1003; ++i)
    ASSERT_THAT(CreateTyped(*store_, Job("j" + std::to_string(i))), IsOk());
  ASSERT_THAT(CreateTyped(*store_, Job("other")), IsOk());
  EXPECT_EQ(ListTyped<api::Job>(*store_, "x")->size(), 1004u);
  EXPECT_EQ(ListTyped<api::Job>(*store_, "", "j")->size(), 1003u);
  EXPECT_EQ(ListTyped<api::Job>(*store_, "y")->size(), 0u);
}

TEST_F(TypedTest, AMemberOfANewerVersionIsIgnoredAndABrokenOneNamed) {
  StoredObject stored = ToStored(Job("a"));
  stored.spec_json = R"({"function":"hello","fromTheFuture":1})";
  EXPECT_THAT(FromStored<api::Job>(stored), IsOk());
  stored.spec_json = R"({"runId":"three"})";
  EXPECT_THAT(FromStored<api::Job>(stored), IsError(Code::kInternal, HasSubstr("/spec/runId")));
  stored.spec_json = "{";
  EXPECT_THAT(FromStored<api::Job>(stored), IsError(Code::kInternal, HasSubstr("Job x/a")));
}

TEST_F(TypedTest, MutateStatusWritesTheStatusOnly) {
  ASSERT_THAT(CreateTyped(*store_, Job("a")), IsOk());
  const auto after = MutateStatus<api::Job>(*store_, "x", "a", [](api::Job& job) {
    job.status.phase = "Running";
    job.spec.run_id = 99;
    job.metadata.annotations["a"] = "b";
    return base::Ok();
  });
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(after->status.phase, "Running");
  EXPECT_EQ(after->spec.run_id, 3);
  EXPECT_EQ(after->metadata.generation, 1);
  EXPECT_TRUE(after->metadata.annotations.empty());
}

TEST_F(TypedTest, MutateWritesAll) {
  ASSERT_THAT(CreateTyped(*store_, Job("a")), IsOk());
  const auto after = Mutate<api::Job>(*store_, "x", "a", [](api::Job& job) {
    job.spec.run_id = 4;
    job.metadata.annotations["a"] = "b";
    job.metadata.resource_version = "ignored";
    return base::Ok();
  });
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(after->spec.run_id, 4);
  EXPECT_EQ(after->metadata.generation, 2);
  EXPECT_EQ(after->metadata.annotations.at("a"), "b");
}

TEST_F(TypedTest, MutateReturnsTheErrorOfTheChange) {
  ASSERT_THAT(CreateTyped(*store_, Job("a")), IsOk());
  EXPECT_THAT(MutateStatus<api::Job>(*store_, "x", "a",
                                     [](api::Job&) -> base::Status {
                                       return base::Err(Code::kFailedPrecondition, "no");
                                     }),
              IsError(Code::kFailedPrecondition, "no"));
  EXPECT_THAT(MutateStatus<api::Job>(*store_, "x", "none", [](api::Job&) { return base::Ok(); }),
              IsError(Code::kNotFound, _));
}

TEST_F(TypedTest, MutateGivesUpAfterABoundedNumberOfTries) {
  ASSERT_THAT(CreateTyped(*store_, Job("a")), IsOk());
  int tries = 0;
  const auto result = MutateStatus<api::Job>(*store_, "x", "a", [&](api::Job& job) {
    ++tries;
    auto other = store_->Get({"Job", "x", "a"});
    other->metadata.annotations["n"] = std::to_string(tries);
    EXPECT_THAT(store_->Update(*other), IsOk());
    job.status.attempts = tries;
    return base::Ok();
  });
  EXPECT_THAT(result, IsError(Code::kAborted, _));
  EXPECT_EQ(tries, 20);
}

TEST_F(TypedTest, MutateTriesAgainWhereOthersWriteToo) {
  ASSERT_THAT(CreateTyped(*store_, Job("a")), IsOk());
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        base::Result<api::Job> result = base::Err(Code::kAborted, "");
        for (int again = 0; again < 100 && !result; ++again) {
          result = MutateStatus<api::Job>(*store_, "x", "a", [](api::Job& job) {
            ++job.status.attempts;
            return base::Ok();
          });
        }
        EXPECT_THAT(result, IsOk());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(GetTyped<api::Job>(*store_, "x", "a")->status.attempts, 150);
}

}  // namespace
}  // namespace sless::store
