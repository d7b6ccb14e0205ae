#include "server/store/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "client/base/testing/result_matchers.h"
#include "server/store/sqlite/database.h"
#include "server/store/sqlite/schema.h"
#include "server/store/testing/object_store_conformance.h"

namespace sless::store {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using testing::HasSubstr;

// A folder that goes at the end.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sless-store-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The store and its folder as one object, for the conformance suite.
class StoreInTempDir final : public ObjectStore {
 public:
  explicit StoreInTempDir(const base::Clock& clock)
      : store_(OpenSqlite(dir_.File("data/sless.db"), clock).value()) {}
  base::Result<StoredObject> Get(const api::ObjectKey& key) const override {
    return store_->Get(key);
  }
  base::Result<Page> List(const ListQuery& query) const override { return store_->List(query); }
  base::Result<StoredObject> Create(StoredObject object) override {
    return store_->Create(std::move(object));
  }
  base::Result<StoredObject> Update(StoredObject object) override {
    return store_->Update(std::move(object));
  }
  base::Status Delete(const api::ObjectKey& key, std::optional<std::string> version) override {
    return store_->Delete(key, version);
  }
  std::unique_ptr<Subscription> Subscribe(std::function<void(const Change&)> callback) override {
    return store_->Subscribe(std::move(callback));
  }

 private:
  TempDir dir_;
  std::unique_ptr<ObjectStore> store_;
};

INSTANTIATE_TEST_SUITE_P(Sqlite, ObjectStoreConformance,
                         testing::ValuesIn(StoreDriver([](const base::Clock& clock) {
                           return std::make_unique<StoreInTempDir>(clock);
                         })));

class SqliteStoreTest : public testing::Test {
 protected:
  std::unique_ptr<ObjectStore> Open() {
    auto store = OpenSqlite(path_, clock_);
    EXPECT_THAT(store, IsOk());
    return store ? std::move(*store) : nullptr;
  }
  static StoredObject Make(const std::string& name) {
    StoredObject object;
    object.key = {"Job", "x", name};
    object.spec_json = object.status_json = "{}";
    return object;
  }

  TempDir dir_;
  base::FakeClock clock_;
  std::string path_ = dir_.File("data/sless.db");
};

TEST_F(SqliteStoreTest, KeepsObjectsAndTheRevisionOverAReopen) {
  auto first = Open();
  ASSERT_THAT(first->Create(Make("gone")), IsOk());
  ASSERT_THAT(first->Delete({"Job", "x", "gone"}, std::nullopt), IsOk());
  const auto created = first->Create(Make("a"));
  first.reset();
  auto second = Open();
  const auto read = second->Get({"Job", "x", "a"});
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->metadata, created->metadata);
  const auto next = second->Create(Make("b"));
  EXPECT_GT(std::stoll(next->metadata.resource_version),
            std::stoll(created->metadata.resource_version));
}

TEST_F(SqliteStoreTest, FilesAreForTheOwnerOnly) {
  const mode_t old = ::umask(0);
  auto store = Open();
  ASSERT_THAT(store->Create(Make("a")), IsOk());
  ::umask(old);
  struct stat info {};
  for (const char* suffix : {"", "-wal", "-shm"}) {
    ASSERT_EQ(::stat((path_ + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << suffix;
  }
  ASSERT_EQ(::stat(dir_.File("data").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

// root makes the first token, the server is another user.
TEST_F(SqliteStoreTest, AFileThatRootMakesBelongsToTheOwnerOfItsFolder) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const auto folder = dir_.File("data");
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  ASSERT_EQ(::chown(folder.c_str(), 12345, 12346), 0);
  auto store = Open();
  ASSERT_THAT(store->Create(Make("a")), IsOk());
  struct stat info {};
  for (const char* suffix : {"", "-wal", "-shm"}) {
    ASSERT_EQ(::stat((path_ + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_uid, 12345u) << suffix;
    EXPECT_EQ(info.st_gid, 12346u) << suffix;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << suffix;
  }
}

TEST_F(SqliteStoreTest, TakesOthersPermissionsOffAnOldFile) {
  Open().reset();
  ASSERT_EQ(::chmod(path_.c_str(), 0644), 0);
  Open().reset();
  struct stat info {};
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(SqliteStoreTest, SeesWritesOfASecondOpenerAtOnce) {
  auto server = Open();
  auto tool = Open();
  int changes = 0;
  const auto subscription = server->Subscribe([&](const Change&) { ++changes; });
  for (int i = 0; i < 20; ++i) {
    const std::string name = "n" + std::to_string(i);
    ASSERT_THAT((i % 2 ? server : tool)->Create(Make(name)), IsOk());
    EXPECT_THAT((i % 2 ? tool : server)->Get({"Job", "x", name}), IsOk());
  }
  EXPECT_EQ(server->List({"Job", "x", "", 100, ""})->items.size(), 20u);
  EXPECT_EQ(changes, 10);
}

TEST_F(SqliteStoreTest, TwoOpenersWritingAtOnceLoseNothing) {
  auto server = Open();
  auto tool = Open();
  const auto write = [&](ObjectStore& store, const std::string& prefix) {
    for (int i = 0; i < 30; ++i)
      EXPECT_THAT(store.Create(Make(prefix + std::to_string(i))), IsOk());
  };
  std::thread other([&] { write(*tool, "t"); });
  write(*server, "s");
  other.join();
  const auto page = server->List({"Job", "x", "", 100, ""});
  ASSERT_EQ(page->items.size(), 60u);
  std::set<std::string> versions;
  for (const auto& item : page->items) versions.insert(item.metadata.resource_version);
  EXPECT_EQ(versions.size(), 60u);
}

TEST_F(SqliteStoreTest, ManyOpenersOfANewFileAgree) {
  std::vector<std::thread> threads;
  std::atomic<int> opened = 0;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] {
      const auto store = OpenSqlite(path_, clock_);
      EXPECT_THAT(store, IsOk());
      opened += store.has_value();
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(opened, 6);
}

TEST_F(SqliteStoreTest, ReadsDoNotWaitForALongWriteOfAnother) {
  auto store = Open();
  ASSERT_THAT(store->Create(Make("a")), IsOk());
  auto other = Database::Open(path_, false);
  ASSERT_THAT(other, IsOk());
  auto transaction = Transaction::Begin(**other);
  ASSERT_THAT(transaction, IsOk());
  ASSERT_THAT((*other)->Execute("UPDATE object SET status = 'x'"), IsOk());
  std::atomic<bool> written = false;
  std::thread writer([&] {
    EXPECT_THAT(store->Create(Make("b")), IsOk());
    written = true;
  });
  const auto read = store->Get({"Job", "x", "a"});
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->status_json, "{}");
  EXPECT_FALSE(written);
  EXPECT_THAT(transaction->Commit(), IsOk());
  writer.join();
  EXPECT_EQ(store->Get({"Job", "x", "a"})->status_json, "x");
}

TEST_F(SqliteStoreTest, RefusesANewerVersion) {
  Open().reset();
  auto db = Database::Open(path_, false);
  ASSERT_THAT((*db)->Execute("PRAGMA user_version=2"), IsOk());
  db->reset();
  EXPECT_THAT(OpenSqlite(path_, clock_),
              IsError(Code::kFailedPrecondition, HasSubstr("newer slessd (its schema is 2")));
}

TEST_F(SqliteStoreTest, RefusesADatabaseOfSomebodyElse) {
  ASSERT_TRUE(std::filesystem::create_directory(dir_.File("data")));
  std::ofstream(path_).close();
  auto db = Database::Open(path_, false);
  ASSERT_THAT((*db)->Execute("CREATE TABLE pets(name TEXT)"), IsOk());
  db->reset();
  EXPECT_THAT(OpenSqlite(path_, clock_),
              IsError(Code::kFailedPrecondition, HasSubstr("not one of slessd")));
}

TEST_F(SqliteStoreTest, RefusesWhatIsNoDatabase) {
  ASSERT_TRUE(std::filesystem::create_directory(dir_.File("data")));
  std::ofstream(path_) << std::string(8192, 'x');
  EXPECT_THAT(OpenSqlite(path_, clock_),
              IsError(Code::kFailedPrecondition, HasSubstr("not a database")));
  EXPECT_THAT(OpenSqlite(dir_.File("data"), clock_),
              IsError(Code::kUnavailable, HasSubstr(dir_.File("data"))));
}

TEST_F(SqliteStoreTest, RefusesADamagedDatabase) {
  auto store = Open();
  for (int i = 0; i < 50; ++i) ASSERT_THAT(store->Create(Make("name" + std::to_string(i))), IsOk());
  store.reset();
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096);
  file << std::string(8192, '\x7f');
  file.close();
  const auto opened = OpenSqlite(path_, clock_);
  ASSERT_FALSE(opened.has_value());
  EXPECT_THAT(opened, IsError(Code::kFailedPrecondition, HasSubstr("damaged")));
}

// `slessd token` beside a running server must not read a large store, let alone hold it.
TEST_F(SqliteStoreTest, WithoutACheckOnlyWhatIsReadCounts) {
  auto store = Open();
  for (int i = 0; i < 500; ++i) {
    ASSERT_THAT(store->Create(Make(fmt::format("name{:03}", i))), IsOk());
  }
  store.reset();
  const auto pages = std::filesystem::file_size(path_) / 4096;
  ASSERT_GT(pages, 20u);
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>((pages / 2) * 4096));
  file << std::string(4096, '\x7f');
  file.close();
  ASSERT_FALSE(OpenSqlite(path_, clock_).has_value());
  const auto opened = OpenSqlite(path_, clock_, Check::kNone);
  ASSERT_THAT(opened, IsOk());
  EXPECT_THAT((*opened)->Create(Make("zz")), IsOk());
}

TEST_F(SqliteStoreTest, TheCheckKeepsNobodyFromWriting) {
  const auto store = Open();
  auto db = Database::Open(path_, false);
  ASSERT_THAT(db, IsOk());
  auto held = Transaction::Begin(**db);  // where the check wanted to write, it would wait for 5 s
  ASSERT_THAT(held, IsOk());
  auto other = Database::Open(path_, false);
  ASSERT_THAT(other, IsOk());
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THAT(CheckWhole(**other, path_), IsOk());
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(4));
}

TEST_F(SqliteStoreTest, SaysWhereItCannotOpen) {
  EXPECT_THAT(OpenSqlite("/proc/nowhere/data/sless.db", clock_),
              IsError(Code::kUnavailable, HasSubstr("/proc/nowhere/data/sless.db")));
}

// Runs in the child: creates and updates objects for ever and reports each acknowledged write.
[[noreturn]] void WriteUntilKilled(const std::string& path, int report, int round) {
  const base::SystemClock clock;
  auto store = OpenSqlite(path, clock);
  if (!store) ::_exit(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const std::string name = "r" + std::to_string(round) + "-" + std::to_string(i);
    StoredObject object;
    object.key = {"Run", "x", name};
    object.spec_json = "\"" + std::string(static_cast<size_t>(i % 7) * 900, 'x') + "\"";
    auto created = (*store)->Create(object);
    if (!created) ::_exit(2);
    created->status_json = "\"done\"";
    if (!(*store)->Update(*created)) ::_exit(3);
    const std::string line = name + "\n";
    if (::write(report, line.data(), line.size()) < 0) ::_exit(4);
  }
  ::_exit(5);
}

TEST_F(SqliteStoreTest, KillLosesNothingThatWasAcknowledged) {
  Open().reset();
  std::string acknowledged;
  for (int round = 0; round < 4; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) WriteUntilKilled(path_, ends[1], round);
    ::close(ends[1]);
    // Kill in the middle of a write: after some acknowledgements, at no special moment.
    char buffer[4096];
    size_t seen = 0;
    for (ssize_t n; seen < 200 && (n = ::read(ends[0], buffer, sizeof buffer)) > 0;
         seen += static_cast<size_t>(n)) {
      acknowledged.append(buffer, static_cast<size_t>(n));
    }
    std::this_thread::sleep_for(std::chrono::microseconds(300 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child ended by itself with " << WEXITSTATUS(status);
    for (ssize_t n; (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
      acknowledged.append(buffer, static_cast<size_t>(n));
    ::close(ends[0]);

    auto store = Open();
    ASSERT_TRUE(store);
    size_t count = 0;
    for (size_t start = 0, end; (end = acknowledged.find('\n', start)) != std::string::npos;
         start = end + 1, ++count) {
      const auto read = store->Get({"Run", "x", acknowledged.substr(start, end - start)});
      ASSERT_THAT(read, IsOk());
      ASSERT_EQ(read->status_json, "\"done\"");
    }
    EXPECT_GT(count, 0u);
  }
}

TEST_F(SqliteStoreTest, AGetTakesMicroseconds) {
  auto store = Open();
  for (int i = 0; i < 200; ++i) {
    auto object = Make("name" + std::to_string(i));
    object.spec_json = "\"" + std::string(2000, 'x') + "\"";
    ASSERT_THAT(store->Create(object), IsOk());
  }
  constexpr int kGets = 2000;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kGets; ++i)
    ASSERT_TRUE(store->Get({"Job", "x", "name" + std::to_string(i % 200)}).has_value());
  const auto each =
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
      kGets;
  RecordProperty("microseconds", std::to_string(each));
  std::printf("Get: %.1f us each\n", each);
  EXPECT_LT(each, 1000);  // a wide bound: this build has sanitizers and the machine is shared
}

}  // namespace
}  // namespace sless::store
