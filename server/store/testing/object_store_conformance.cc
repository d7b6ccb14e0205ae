#include "server/store/testing/object_store_conformance.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include "client/base/testing/result_matchers.h"
#include "server/store/namespaces.h"

namespace sless::store {

using base::Code;
using base::IsError;
using base::IsOk;
using base::IsOkAndHolds;
using testing::_;
using testing::HasSubstr;

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ObjectStoreConformance);

std::vector<StoreFactory> StoreDriver(StoreFactory make) { return {std::move(make)}; }

StoredObject ObjectStoreConformance::Make(const std::string& kind, const std::string& ns,
                                          const std::string& name) {
  StoredObject object;
  object.key = {kind, ns, name};
  object.metadata.annotations["note"] = "ä \"quoted\"";
  object.spec_json = R"({"runtime":"python3.11"})";
  object.status_json = R"({"phase":"Pending"})";
  return object;
}

StoredObject ObjectStoreConformance::MustCreate(const std::string& kind, const std::string& ns,
                                                const std::string& name) {
  auto created = store_->Create(Make(kind, ns, name));
  EXPECT_THAT(created, IsOk());
  return created.value_or(StoredObject());
}

std::string ObjectStoreConformance::Names(ListQuery query) {
  std::string names;
  for (int i = 0; i < 100; ++i) {
    const auto page = store_->List(query);
    if (!page) return base::ToString(page.error());
    EXPECT_LE(page->items.size(), query.limit);
    for (const auto& item : page->items) names += item.key.Id() + " ";
    if (page->continue_after.empty()) return names;
    names += "| ";
    query.continue_after = page->continue_after;
  }
  return "endless: " + names;
}

TEST_P(ObjectStoreConformance, CreateSetsWhatTheServerSets) {
  auto wanted = Make("Function", "default", "hello");
  wanted.metadata.uid = "mine";
  wanted.metadata.generation = 7;
  wanted.metadata.resource_version = "77";
  const auto created = store_->Create(wanted);
  ASSERT_THAT(created, IsOk());
  EXPECT_EQ(created->metadata.ns, "default");
  EXPECT_EQ(created->metadata.name, "hello");
  EXPECT_EQ(created->metadata.uid.size(), 32u);
  EXPECT_EQ(created->metadata.generation, 1);
  EXPECT_NE(created->metadata.resource_version, "77");
  EXPECT_EQ(created->metadata.created_at, base::FormatTime(clock_.Now()));
  EXPECT_EQ(created->metadata.updated_at, created->metadata.created_at);
  EXPECT_EQ(created->metadata.annotations, wanted.metadata.annotations);
  EXPECT_EQ(created->spec_json, wanted.spec_json);
  EXPECT_EQ(created->status_json, wanted.status_json);

  const auto read = store_->Get(wanted.key);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->metadata, created->metadata);
  EXPECT_EQ(read->spec_json, wanted.spec_json);
  EXPECT_EQ(read->status_json, wanted.status_json);
}

TEST_P(ObjectStoreConformance, CreateRefusesASecondOneOfTheName) {
  MustCreate("Function", "default", "hello");
  EXPECT_THAT(store_->Create(Make("Function", "default", "hello")),
              IsError(Code::kAlreadyExists, HasSubstr("Function default/hello")));
  EXPECT_THAT(store_->Create(Make("Function", "other", "hello")), IsOk());
  EXPECT_THAT(store_->Create(Make("Trigger", "default", "hello")), IsOk());
}

TEST_P(ObjectStoreConformance, CreateRefusesBrokenKeys) {
  for (const auto& key : std::vector<api::ObjectKey>{{"", "a", "b"},
                                                     {"K", "", "b"},
                                                     {"K", "a", ""},
                                                     {"K", "a/b", "c"},
                                                     {"K", "a", "b/c"},
                                                     {"K", "a", std::string("b\0c", 3)},
                                                     {"K", "a", "b\nc"},
                                                     {"K", "a", std::string(254, 'x')}}) {
    EXPECT_THAT(store_->Create(Make(key.kind, key.ns, key.name)),
                IsError(Code::kInvalidArgument, _))
        << key.ToString();
  }
  EXPECT_THAT(store_->Create(Make("K", "a", std::string(253, 'x'))), IsOk());
}

TEST_P(ObjectStoreConformance, GetAndDeleteOfNothingAreNotFound) {
  EXPECT_THAT(store_->Get({"Function", "default", "none"}),
              IsError(Code::kNotFound, HasSubstr("Function default/none")));
  EXPECT_THAT(store_->Delete({"Function", "default", "none"}, std::nullopt),
              IsError(Code::kNotFound, _));
  EXPECT_THAT(store_->Update(Make("Function", "default", "none")), IsError(Code::kNotFound, _));
}

TEST_P(ObjectStoreConformance, UpdateRaisesGenerationForSpecOnly) {
  auto object = MustCreate("Function", "default", "hello");
  const auto created_at = object.metadata.created_at;
  clock_.Advance(std::chrono::seconds(5));

  object.status_json = R"({"phase":"Ready"})";
  auto status = store_->Update(object);
  ASSERT_THAT(status, IsOk());
  EXPECT_EQ(status->metadata.generation, 1);
  EXPECT_EQ(status->metadata.updated_at, created_at);
  EXPECT_NE(status->metadata.resource_version, object.metadata.resource_version);

  status->spec_json = R"({"runtime":"nodejs20"})";
  auto spec = store_->Update(*status);
  ASSERT_THAT(spec, IsOk());
  EXPECT_EQ(spec->metadata.generation, 2);
  EXPECT_EQ(spec->metadata.created_at, created_at);
  EXPECT_EQ(spec->metadata.updated_at, base::FormatTime(clock_.Now()));

  spec->metadata.annotations = {{"a", "b"}};
  spec->metadata.deletion_requested_at = "2026-01-01T00:00:00.000Z";
  auto metadata = store_->Update(*spec);
  ASSERT_THAT(metadata, IsOk());
  EXPECT_EQ(metadata->metadata.generation, 2);

  const auto read = store_->Get(object.key);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->metadata, metadata->metadata);
  EXPECT_EQ(read->metadata.annotations, (std::map<std::string, std::string>{{"a", "b"}}));
  EXPECT_EQ(read->metadata.deletion_requested_at, "2026-01-01T00:00:00.000Z");
  EXPECT_EQ(read->spec_json, R"({"runtime":"nodejs20"})");
  EXPECT_EQ(read->status_json, R"({"phase":"Ready"})");
}

TEST_P(ObjectStoreConformance, UpdateCannotTouchWhatTheServerSets) {
  auto object = MustCreate("Function", "default", "hello");
  auto changed = object;
  changed.metadata.generation = 99;
  changed.metadata.created_at = "x";
  changed.metadata.updated_at = "x";
  changed.metadata.name = "other";
  changed.status_json = "{}";
  const auto after = store_->Update(changed);
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(after->metadata.generation, 1);
  EXPECT_EQ(after->metadata.created_at, object.metadata.created_at);
  EXPECT_EQ(after->metadata.updated_at, object.metadata.updated_at);
  EXPECT_EQ(after->metadata.name, "hello");
}

TEST_P(ObjectStoreConformance, UpdateOfAnEqualObjectIsNoWrite) {
  const auto object = MustCreate("Function", "default", "hello");
  int changes = 0;
  const auto subscription = store_->Subscribe([&](const Change&) { ++changes; });
  const auto after = store_->Update(object);
  ASSERT_THAT(after, IsOk());
  EXPECT_EQ(after->metadata, object.metadata);
  EXPECT_EQ(changes, 0);
}

TEST_P(ObjectStoreConformance, UpdateOfWhatOthersChangedIsAborted) {
  const auto object = MustCreate("Function", "default", "hello");
  auto first = object;
  first.status_json = "{\"a\":1}";
  ASSERT_THAT(store_->Update(first), IsOk());
  auto second = object;
  second.status_json = "{\"b\":1}";
  EXPECT_THAT(store_->Update(second), IsError(Code::kAborted, HasSubstr("read it again")));
  second.metadata.resource_version = "";
  EXPECT_THAT(store_->Update(second), IsError(Code::kAborted, _));
  EXPECT_EQ(store_->Get(object.key)->status_json, "{\"a\":1}");
}

TEST_P(ObjectStoreConformance, ANewObjectOfAnOldNameIsAnother) {
  const auto old = MustCreate("Function", "default", "hello");
  ASSERT_THAT(store_->Delete(old.key, std::nullopt), IsOk());
  const auto fresh = MustCreate("Function", "default", "hello");
  EXPECT_NE(fresh.metadata.uid, old.metadata.uid);
  EXPECT_NE(fresh.metadata.resource_version, old.metadata.resource_version);
  EXPECT_THAT(store_->Update(old), IsError(Code::kAborted, _));
  auto stale = fresh;
  stale.metadata.uid = old.metadata.uid;
  EXPECT_THAT(store_->Update(stale), IsError(Code::kAborted, HasSubstr("made again")));
}

TEST_P(ObjectStoreConformance, DeleteChecksTheVersion) {
  auto object = MustCreate("Function", "default", "hello");
  const auto old = object.metadata.resource_version;
  object.status_json = "{}";
  object = *store_->Update(object);
  EXPECT_THAT(store_->Delete(object.key, old), IsError(Code::kAborted, _));
  EXPECT_THAT(store_->Get(object.key), IsOk());
  EXPECT_THAT(store_->Delete(object.key, object.metadata.resource_version), IsOk());
  EXPECT_THAT(store_->Get(object.key), IsError(Code::kNotFound, _));
}

TEST_P(ObjectStoreConformance, ListIsOrderedFilteredAndPaged) {
  for (const auto& [ns, name] : std::vector<std::pair<std::string, std::string>>{{"b", "one"},
                                                                                 {"a", "two"},
                                                                                 {"a", "one"},
                                                                                 {"a-b", "one"},
                                                                                 {"a", "one-more"},
                                                                                 {"a", "one.1"}}) {
    MustCreate("Run", ns, name);
  }
  MustCreate("Function", "a", "one");
  EXPECT_EQ(Names({"Run", "", "", 100, ""}), "a/one a/one-more a/one.1 a/two a-b/one b/one ");
  EXPECT_EQ(Names({"Run", "", "", 2, ""}), "a/one a/one-more | a/one.1 a/two | a-b/one b/one ");
  EXPECT_EQ(Names({"Run", "", "", 6, ""}), "a/one a/one-more a/one.1 a/two a-b/one b/one ");
  EXPECT_EQ(Names({"Run", "a", "", 3, ""}), "a/one a/one-more a/one.1 | a/two ");
  EXPECT_EQ(Names({"Run", "a", "one.", 3, ""}), "a/one.1 ");
  EXPECT_EQ(Names({"Run", "", "one", 1, ""}), "a/one | a/one-more | a/one.1 | a-b/one | b/one ");
  EXPECT_EQ(Names({"Run", "c", "", 100, ""}), "");
  EXPECT_EQ(Names({"Trigger", "", "", 100, ""}), "");
}

TEST_P(ObjectStoreConformance, APageOfLargeObjectsEndsEarlier) {
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    auto object = Make("Run", "x", name);
    (name[0] % 2 == 0 ? object.spec_json : object.status_json) = std::string(1536 << 10, 'x');
    ASSERT_THAT(store_->Create(std::move(object)), IsOk());
  }
  MustCreate("Run", "x", "g");
  EXPECT_EQ(Names({"Run", "x", "", 1000, ""}), "x/a x/b x/c | x/d x/e x/f | x/g ");
  EXPECT_EQ(Names({"Run", "", "", 2, ""}), "x/a x/b | x/c x/d | x/e x/f | x/g ");
}

TEST_P(ObjectStoreConformance, NamespacesAreListedOnceInOrder) {
  for (const char* ns : {"b", "a", "a-b", "c"}) {
    for (const char* name : {"one", "zz.9", "~"}) MustCreate("Run", ns, name);
  }
  MustCreate("Function", "d", "one");
  using testing::ElementsAre;
  const auto list = [&](const std::string& after, size_t limit) {
    return Namespaces(*store_, "Run", after, limit);
  };
  EXPECT_THAT(list("", 10), IsOkAndHolds(ElementsAre("a", "a-b", "b", "c")));
  EXPECT_THAT(list("", 2), IsOkAndHolds(ElementsAre("a", "a-b")));
  EXPECT_THAT(list("a-b", 2), IsOkAndHolds(ElementsAre("b", "c")));
  EXPECT_THAT(list("c", 2), IsOkAndHolds(ElementsAre()));
  EXPECT_THAT(list("x/y", 2), IsError(Code::kInvalidArgument, _));
}

TEST_P(ObjectStoreConformance, ListGoesOnAfterAnItemThatIsGone) {
  for (const char* name : {"a", "b", "c", "d"}) MustCreate("Job", "x", name);
  const auto first = store_->List({"Job", "x", "", 2, ""});
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(store_->Delete({"Job", "x", "b"}, std::nullopt), IsOk());
  EXPECT_EQ(Names({"Job", "x", "", 2, first->continue_after}), "x/c x/d ");
}

TEST_P(ObjectStoreConformance, ListRefusesWhatItCannotMean) {
  EXPECT_THAT(store_->List({"Job", "", "", 0, ""}),
              IsError(Code::kInvalidArgument, HasSubstr("1 to 1000")));
  EXPECT_THAT(store_->List({"Job", "", "", 1001, ""}), IsError(Code::kInvalidArgument, _));
  EXPECT_THAT(store_->List({"Job", "", "", 1000, ""}), IsOk());
  EXPECT_THAT(store_->List({"", "", "", 10, ""}), IsError(Code::kInvalidArgument, _));
  for (const char* token : {"x", "a/b/c", "/", "a/", "/b", "' OR 1=1"}) {
    EXPECT_THAT(store_->List({"Job", "", "", 10, token}),
                IsError(Code::kInvalidArgument, HasSubstr("continue")))
        << token;
  }
  EXPECT_THAT(store_->List({"Job", "mine", "", 10, "other/x"}), IsError(Code::kInvalidArgument, _));
}

TEST_P(ObjectStoreConformance, KeepsAnyBytesOfTexts) {
  auto object = Make("Function", "default", "it's; DROP TABLE object");
  object.spec_json = std::string("{\"a\":\"\0\xff'\"}", 12);
  object.status_json = "";
  object.metadata.annotations = {{"", ""}, {"'", "\n"}};
  ASSERT_THAT(store_->Create(object), IsOk());
  const auto read = store_->Get(object.key);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->spec_json, object.spec_json);
  EXPECT_EQ(read->status_json, "");
  EXPECT_EQ(read->metadata.annotations, object.metadata.annotations);
}

TEST_P(ObjectStoreConformance, KeepsLargeObjects) {
  auto object = Make("Function", "default", "large");
  object.spec_json = std::string(3 << 20, 'x');
  ASSERT_THAT(store_->Create(object), IsOk());
  EXPECT_EQ(store_->Get(object.key)->spec_json.size(), object.spec_json.size());
}

TEST_P(ObjectStoreConformance, ChangesComeInOrderWithRisingRevisions) {
  std::vector<Change> changes;
  auto subscription = store_->Subscribe([&](const Change& change) { changes.push_back(change); });
  auto object = MustCreate("Function", "default", "hello");
  object.status_json = "{}";
  object = *store_->Update(object);
  ASSERT_THAT(store_->Delete(object.key, std::nullopt), IsOk());
  EXPECT_FALSE(store_->Delete(object.key, std::nullopt));
  ASSERT_EQ(changes.size(), 3u);
  EXPECT_LT(changes[0].revision, changes[1].revision);
  EXPECT_LT(changes[1].revision, changes[2].revision);
  EXPECT_EQ(changes[1].key, object.key);
  EXPECT_FALSE(changes[1].deleted);
  EXPECT_TRUE(changes[2].deleted);
  subscription.reset();
  MustCreate("Function", "default", "hello");
  EXPECT_EQ(changes.size(), 3u);
}

TEST_P(ObjectStoreConformance, AChangeIsReadableOnceItIsTold) {
  std::mutex mutex;
  std::vector<api::ObjectKey> told;
  const auto subscription = store_->Subscribe([&](const Change& change) {
    std::lock_guard lock(mutex);
    told.push_back(change.key);
  });
  std::atomic<bool> done = false;
  std::atomic<int> missing = 0;
  std::thread reader([&] {
    while (!done) {
      std::vector<api::ObjectKey> keys;
      {
        std::lock_guard lock(mutex);
        keys = told;
      }
      for (const auto& key : keys) missing += !store_->Get(key);
    }
  });
  for (int i = 0; i < 30; ++i) MustCreate("Job", "x", "job" + std::to_string(i));
  done = true;
  reader.join();
  EXPECT_EQ(missing, 0);
}

TEST_P(ObjectStoreConformance, OneOfManyWritersWinsEachVersion) {
  auto object = MustCreate("Job", "x", "counter");
  object.spec_json = "0";
  object = *store_->Update(object);
  std::vector<int64_t> revisions;
  const auto subscription =
      store_->Subscribe([&](const Change& change) { revisions.push_back(change.revision); });
  constexpr int kThreads = 6, kEach = 20;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int done = 0; done < kEach;) {
        auto current = store_->Get(object.key);
        ASSERT_THAT(current, IsOk());
        current->spec_json = std::to_string(std::stoi(current->spec_json) + 1);
        const auto written = store_->Update(*current);
        if (written)
          ++done;
        else
          ASSERT_EQ(written.error().code, Code::kAborted);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store_->Get(object.key)->spec_json, std::to_string(kThreads * kEach));
  EXPECT_EQ(revisions.size(), size_t{kThreads * kEach});
  EXPECT_TRUE(std::is_sorted(revisions.begin(), revisions.end()));
  EXPECT_EQ(std::set<int64_t>(revisions.begin(), revisions.end()).size(), revisions.size());
}

TEST_P(ObjectStoreConformance, OneOfManyCreatorsWins) {
  std::atomic<int> created = 0, existed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const auto result = store_->Create(Make("Run", "x", "job.1"));
      if (result)
        ++created;
      else if (result.error().code == Code::kAlreadyExists)
        ++existed;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(created, 1);
  EXPECT_EQ(existed, 7);
}

TEST_P(ObjectStoreConformance, EndOfASubscriptionWaitsForItsCallback) {
  std::atomic<bool> alive = true, late = false;
  auto subscription = store_->Subscribe([&](const Change&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!alive) late = true;
  });
  std::thread writer([&] {
    for (int i = 0; i < 40; ++i) MustCreate("Job", "x", std::to_string(i));
  });
  while (!store_->Get({"Job", "x", "5"})) std::this_thread::yield();
  subscription.reset();
  alive = false;
  writer.join();
  EXPECT_FALSE(late);
}

}  // namespace sless::store
