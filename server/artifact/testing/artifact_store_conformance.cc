#include "server/artifact/testing/artifact_store_conformance.h"

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "client/base/testing/result_matchers.h"

namespace sless::artifact {

using base::Code;
using base::IsError;
using base::IsOk;
using base::IsOkAndHolds;
using testing::_;
using testing::ElementsAre;
using testing::HasSubstr;

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ArtifactStoreConformance);

std::vector<ArtifactFactory> ArtifactDriver(ArtifactFactory make) { return {std::move(make)}; }

base::Status ArtifactStoreConformance::Put(const std::string& ns, const std::string& digest,
                                           std::string_view bytes) {
  ASSIGN_OR_RETURN(const auto writer, store_->Create(ns));
  RETURN_IF_ERROR(writer->Write(bytes));
  return writer->Commit(digest);
}

std::string ArtifactStoreConformance::Contents(const std::string& ns, const std::string& digest) {
  const auto path = store_->Fetch(ns, digest);
  if (!path) return base::ToString(path.error());
  std::ifstream file(*path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_P(ArtifactStoreConformance, WhatWasCommittedIsThere) {
  EXPECT_THAT(store_->Has("x", Digest('a')), IsOkAndHolds(false));
  EXPECT_THAT(store_->Fetch("x", Digest('a')), IsError(Code::kNotFound, HasSubstr(Digest('a'))));
  const std::string bytes("PK\0\xff", 4);
  ASSERT_THAT(Put("x", Digest('a'), bytes), IsOk());
  EXPECT_THAT(store_->Has("x", Digest('a')), IsOkAndHolds(true));
  EXPECT_EQ(Contents("x", Digest('a')), bytes);
}

TEST_P(ArtifactStoreConformance, WhatWasAskedForSinceIsNotRemoved) {
  for (const bool by_has : {true, false}) {
    ASSERT_THAT(Put("x", Digest('a'), "1"), IsOk());
    const auto listed = store_->List("x")->at(0).last_used;
    const auto before = std::chrono::system_clock::now();
    // As coarse as the clock of a file system may be.
    while (std::chrono::system_clock::now() - before < std::chrono::milliseconds(20))
      std::this_thread::yield();
    const auto between = listed + std::chrono::milliseconds(1);
    if (by_has) {
      EXPECT_THAT(store_->Has("x", Digest('a')), IsOkAndHolds(true));
    } else {
      EXPECT_THAT(Put("x", Digest('a'), "1"), IsOk());
    }
    EXPECT_GT(store_->List("x")->at(0).last_used, listed);
    EXPECT_THAT(store_->Remove("x", Digest('a'), between), IsOk());
    EXPECT_EQ(Contents("x", Digest('a')), "1");
    EXPECT_THAT(
        store_->Remove("x", Digest('a'), std::chrono::system_clock::now() + std::chrono::hours(1)),
        IsOk());
    EXPECT_THAT(store_->Has("x", Digest('a')), IsOkAndHolds(false));
  }
}

TEST_P(ArtifactStoreConformance, NamespacesDoNotSeeEachOther) {
  ASSERT_THAT(Put("x", Digest('a'), "1"), IsOk());
  EXPECT_THAT(store_->Has("y", Digest('a')), IsOkAndHolds(false));
  EXPECT_THAT(store_->Fetch("y", Digest('a')), IsError(Code::kNotFound, _));
}

TEST_P(ArtifactStoreConformance, SeveralWritesAreOneArtifact) {
  auto writer = store_->Create("x");
  ASSERT_THAT(writer, IsOk());
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string part = std::to_string(i) + ",";
    ASSERT_THAT((*writer)->Write(part), IsOk());
    all += part;
  }
  ASSERT_THAT((*writer)->Write(""), IsOk());
  const auto path = (*writer)->Path();
  ASSERT_THAT(path, IsOk());
  std::ifstream file(*path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), all);  // readable before Commit
  EXPECT_THAT(store_->Namespaces(), IsOkAndHolds(ElementsAre()));
  ASSERT_THAT((*writer)->Commit(Digest('b')), IsOk());
  writer->reset();
  EXPECT_EQ(Contents("x", Digest('b')), all);
}

TEST_P(ArtifactStoreConformance, DroppedWithoutCommitLeavesNothing) {
  std::string path;
  {
    auto writer = store_->Create("x");
    ASSERT_THAT(writer, IsOk());
    ASSERT_THAT((*writer)->Write("1"), IsOk());
    path = *(*writer)->Path();
  }
  EXPECT_FALSE(std::ifstream(path).good());
  EXPECT_THAT(store_->List("x"), IsOkAndHolds(testing::IsEmpty()));
}

TEST_P(ArtifactStoreConformance, TheFirstOneStays) {
  ASSERT_THAT(Put("x", Digest('a'), "first"), IsOk());
  ASSERT_THAT(Put("x", Digest('a'), "second"), IsOk());
  EXPECT_EQ(Contents("x", Digest('a')), "first");
}

TEST_P(ArtifactStoreConformance, AWriterEndsWithItsCommit) {
  auto writer = store_->Create("x");
  ASSERT_THAT((*writer)->Commit(Digest('a')), IsOk());
  EXPECT_THAT((*writer)->Write("1"), IsError(Code::kFailedPrecondition, _));
  EXPECT_THAT((*writer)->Commit(Digest('b')), IsError(Code::kFailedPrecondition, _));
  EXPECT_THAT((*writer)->Path(), IsError(Code::kFailedPrecondition, _));
  EXPECT_EQ(Contents("x", Digest('a')), "");
}

TEST_P(ArtifactStoreConformance, ABadDigestLeavesTheWriterUsable) {
  auto writer = store_->Create("x");
  ASSERT_THAT((*writer)->Write("1"), IsOk());
  EXPECT_THAT((*writer)->Commit("sha256:../x"), IsError(Code::kInvalidArgument, _));
  EXPECT_THAT((*writer)->Commit(Digest('a')), IsOk());
}

TEST_P(ArtifactStoreConformance, TheLimitIsKept) {
  ASSERT_THAT(Put("x", Digest('a'), std::string(kConformanceLimit, 'x')), IsOk());
  EXPECT_THAT(Put("x", Digest('b'), std::string(kConformanceLimit + 1, 'x')),
              IsError(Code::kTooLarge, HasSubstr("at most 1 MiB")));
  auto writer = store_->Create("x");
  ASSERT_THAT((*writer)->Write(std::string(kConformanceLimit, 'x')), IsOk());
  EXPECT_THAT((*writer)->Write("x"), IsError(Code::kTooLarge, _));
}

TEST_P(ArtifactStoreConformance, RefusesNamesThatLeaveTheStore) {
  ASSERT_THAT(Put("x", Digest('a'), "1"), IsOk());
  for (const std::string ns : {"", "..", ".", "x/y", "../x", ".tmp", "X", "x\n"}) {
    EXPECT_THAT(store_->Has(ns, Digest('a')), IsError(Code::kInvalidArgument, _)) << ns;
    EXPECT_THAT(store_->Create(ns), IsError(Code::kInvalidArgument, _)) << ns;
    EXPECT_THAT(store_->Fetch(ns, Digest('a')), IsError(Code::kInvalidArgument, _)) << ns;
    EXPECT_THAT(store_->Remove(ns, Digest('a')), IsError(Code::kInvalidArgument, _)) << ns;
    EXPECT_THAT(store_->List(ns), IsError(Code::kInvalidArgument, _)) << ns;
  }
  for (const std::string& digest :
       {std::string(), std::string(64, 'a'), "sha256:" + std::string(63, 'a'),
        "sha256:" + std::string(64, 'A'), "sha512:" + std::string(64, 'a'),
        Digest('a') + "/../" + std::string(64, 'a'), "sha256:../" + std::string(61, 'a'),
        Digest('a') + std::string(1, '\0')}) {
    EXPECT_THAT(store_->Has("x", digest), IsError(Code::kInvalidArgument, _)) << digest;
    EXPECT_THAT(store_->Fetch("x", digest), IsError(Code::kInvalidArgument, _)) << digest;
    EXPECT_THAT(store_->Remove("x", digest), IsError(Code::kInvalidArgument, _)) << digest;
    EXPECT_THAT(Put("x", digest, "1"), IsError(Code::kInvalidArgument, _)) << digest;
  }
}

TEST_P(ArtifactStoreConformance, ListTellsDigestSizeAndTime) {
  const auto before = std::chrono::system_clock::now() - std::chrono::seconds(2);
  ASSERT_THAT(Put("x", Digest('b'), "12"), IsOk());
  ASSERT_THAT(Put("x", Digest('a'), "1"), IsOk());
  ASSERT_THAT(Put("y", Digest('c'), ""), IsOk());
  const auto list = store_->List("x");
  ASSERT_THAT(list, IsOk());
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[0].digest, Digest('a'));
  EXPECT_EQ((*list)[1].digest, Digest('b'));
  EXPECT_EQ((*list)[1].size, 2u);
  EXPECT_GT((*list)[1].last_used, before);
  EXPECT_LT((*list)[1].last_used, before + std::chrono::minutes(1));
  EXPECT_THAT(store_->Namespaces(), IsOkAndHolds(ElementsAre("x", "y")));
  EXPECT_THAT(store_->List("none"), IsOkAndHolds(testing::IsEmpty()));
}

TEST_P(ArtifactStoreConformance, RemoveIsIdempotent) {
  ASSERT_THAT(Put("x", Digest('a'), "1"), IsOk());
  EXPECT_THAT(store_->Remove("x", Digest('a')), IsOk());
  EXPECT_THAT(store_->Remove("x", Digest('a')), IsOk());
  EXPECT_THAT(store_->Remove("none", Digest('a')), IsOk());
  EXPECT_THAT(store_->Has("x", Digest('a')), IsOkAndHolds(false));
  EXPECT_THAT(store_->Namespaces(), IsOkAndHolds(ElementsAre()));
  EXPECT_THAT(Put("x", Digest('a'), "again"), IsOk());
  EXPECT_EQ(Contents("x", Digest('a')), "again");
}

TEST_P(ArtifactStoreConformance, ManyUploadsOfOneAtOnce) {
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i)
        failed += !Put("x", Digest(static_cast<char>('0' + i)),
                       std::string(10'000, static_cast<char>('0' + i)));
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  for (char c = '0'; c < '5'; ++c) EXPECT_EQ(Contents("x", Digest(c)), std::string(10'000, c));
}

TEST_P(ArtifactStoreConformance, UploadsBesideRemovalsOfTheNamespacesLast) {
  std::atomic<bool> done = false;
  std::thread remover([&] {
    while (!done) EXPECT_THAT(store_->Remove("x", Digest('f')), IsOk());
  });
  int failed = 0;
  for (int i = 0; i < 60; ++i) failed += !Put("x", Digest('f'), "1");
  done = true;
  remover.join();
  EXPECT_EQ(failed, 0);
}

}  // namespace sless::artifact
