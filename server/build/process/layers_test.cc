#include <sys/stat.h>

#include <thread>

#include "server/build/process/installer.h"
#include "server/build/process/testing/process_builder_fixture.h"
#include "server/build/process/written_tree.h"

namespace sless::build {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::IsError;
using base::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;

class LayersTest : public ProcessBuilderTest {};

TEST_F(LayersTest, ALayerLiesOnTheDiskBeforeItHasItsName) {
  Write("handler.py", "def handle(event): return event\n");
  const BuildRequest request = Zip("python3.11");
  const std::string layer = root_ + "/layers/code/" + request.source_hash.substr(7);
  std::vector<std::string> synced;
  bool full = true;
  sync_ = [&](const std::string& path) -> base::Status {
    if (full) return base::Err(Code::kUnavailable, "disk full");
    synced.push_back(path);
    EXPECT_EQ(fs::exists(layer + "/handler.py"), synced.size() == 2);
    EXPECT_EQ(fs::exists(path + "/handler.py"), synced.size() == 1);
    return base::Ok();
  };
  Open();
  EXPECT_THAT(Build(request), IsError(Code::kUnavailable, HasSubstr("disk full")));
  EXPECT_FALSE(fs::exists(layer));
  EXPECT_EQ(TempFolders(), 0u);
  full = false;
  ASSERT_THAT(Build(request), IsOk());
  EXPECT_THAT(synced, ElementsAre(HasSubstr("/layers/tmp/"), root_ + "/layers/code"));
}

TEST_F(LayersTest, ADamagedLayerIsMadeAgain) {
  Write("handler.py", "def handle(event): return event\n");
  Write("more/data.txt", "data");
  const BuildRequest request = Zip("python3.11");
  const auto first = Build(request);
  ASSERT_THAT(first, IsOk());
  const std::string handler = first->code_dir + "/handler.py";
  const auto size = fs::file_size(handler);
  const auto mended = [&] {
    const auto again = Build(request);
    ASSERT_THAT(again, IsOk());
    EXPECT_FALSE(again->code_cached);
    EXPECT_EQ(fs::file_size(handler), size);
    EXPECT_TRUE(fs::exists(first->code_dir + "/more/data.txt"));
    EXPECT_TRUE(Build(request)->code_cached);
  };
  fs::resize_file(handler, 0);
  mended();
  fs::remove(first->code_dir + "/more/data.txt");
  mended();
  fs::remove_all(first->code_dir);
  std::ofstream(first->code_dir) << "a file in its place";
  mended();
  std::ofstream(handler) << std::string(size, '\0');
  mended();
  // At the start, so that nobody serves from it.
  fs::resize_file(handler, 0);
  Open();
  EXPECT_FALSE(fs::exists(first->code_dir));
  mended();
  Open();
  EXPECT_TRUE(fs::exists(first->code_dir)) << "a whole one stays";
}

// A replica has the folder itself mounted, whatever its name is later.
TEST_F(LayersTest, ALayerMadeAgainLeavesReplicasTheirFiles) {
  Write("handler.py", "def handle(event): return event\n");
  Write("lazy.py", "here = True\n");
  Write("data.txt", "data");
  const BuildRequest request = Zip("python3.11");
  const auto first = Build(request);
  ASSERT_THAT(first, IsOk());
  const std::string layer = first->code_dir;
  std::vector<base::Fd> replicas;
  const auto damage = [&] {
    auto folder = OpenFolder(layer);
    ASSERT_THAT(folder, IsOk());
    replicas.push_back(std::move(*folder));
    fs::resize_file(layer + "/data.txt", 0);
  };
  const auto sees_all = [](const base::Fd& replica) {
    return faccessat(replica.get(), "lazy.py", R_OK, 0) == 0;
  };
  for (size_t i = 1; i <= 8; ++i) {
    damage();
    ASSERT_THAT(Build(request), IsOk());
    EXPECT_FALSE(IsSameFolder(replicas.back(), layer));
    EXPECT_EQ(fs::file_size(layer + "/data.txt"), 4u);
    for (const auto& replica : replicas) EXPECT_TRUE(sees_all(replica));
    EXPECT_EQ(TempFolders(), i);
  }
  damage();
  EXPECT_THAT(Build(request), IsError(Code::kResourceExhausted, HasSubstr("made again 8 times")))
      << "the disk is not filled";
  EXPECT_TRUE(sees_all(replicas.back()));

  const auto hours_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const auto& old : fs::directory_iterator(root_ + "/layers/tmp"))
    fs::last_write_time(old.path(), hours_ago);
  EXPECT_THAT(builder_->Collect({layer}), IsOk());
  for (const auto& replica : replicas) EXPECT_TRUE(sees_all(replica));
  EXPECT_THAT(builder_->Collect({root_ + "/layers/deps/other"}), IsOk());
  EXPECT_EQ(TempFolders(), 0u) << "no replica of that layer lives";
  ASSERT_THAT(Build(request), IsOk());
  EXPECT_EQ(TempFolders(), 1u);
  Open();
  EXPECT_EQ(TempFolders(), 0u) << "none lives at the start";
}

// Replicas may begin at any moment, those of other functions too.
TEST_F(LayersTest, ALayerMadeAgainIsNeverMissing) {
  Write("handler.py", "def handle(event): return event\n");
  Write("data.txt", "data");
  const BuildRequest request = Zip("python3.11");
  const auto first = Build(request);
  ASSERT_THAT(first, IsOk());
  std::atomic<int> missed{0};
  std::atomic<bool> looked{false};
  std::jthread looks([&, layer = first->code_dir](const std::stop_token& stop) {
    struct stat ignored {};
    for (; !stop.stop_requested(); looked = true)
      if (lstat(layer.c_str(), &ignored) != 0) ++missed;
  });
  while (!looked) std::this_thread::yield();
  for (int i = 0; i < 200; ++i) {
    if (i % 8 == 0) Open();  // what it was is removed
    fs::resize_file(first->code_dir + "/data.txt", 0);
    ASSERT_THAT(Build(request), IsOk());
  }
  looks.request_stop();
  looks.join();
  EXPECT_EQ(missed, 0);
}

TEST_F(LayersTest, FoldersAreExchanged) {
  const std::string a = root_ + "/a", b = root_ + "/b";
  for (const auto exchange : {&Exchange, &ExchangeByRenames}) {
    fs::create_directory(a);
    std::ofstream(a + "/new");
    std::ofstream(b) << "no folder";
    EXPECT_TRUE(exchange(a, b));
    EXPECT_TRUE(fs::exists(b + "/new"));
    EXPECT_TRUE(fs::is_regular_file(a));
    EXPECT_FALSE(exchange(root_ + "/none", b));
    EXPECT_EQ(errno, ENOENT);
    EXPECT_TRUE(fs::exists(b + "/new"));
    EXPECT_FALSE(exchange(a, root_ + "/none"));
    EXPECT_TRUE(fs::is_regular_file(a));
    fs::remove(a);
    fs::remove_all(b);
  }
}

TEST_F(LayersTest, ALayerThatCannotBeMadeAgainStays) {
  bool replace = false;
  sync_ = [&](const std::string& path) -> base::Status {
    if (!replace) return base::Ok();
    fs::rename(path, path + "-elsewhere");
    fs::create_directory_symlink("/etc", path);
    return base::Ok();
  };
  Open();
  Write("handler.py", "def handle(event): return event\n");
  Write("data.txt", "data");
  const BuildRequest request = Zip("python3.11");
  const auto first = Build(request);
  ASSERT_THAT(first, IsOk());
  const auto replica = OpenFolder(first->code_dir);
  ASSERT_THAT(replica, IsOk());
  fs::resize_file(first->code_dir + "/data.txt", 0);
  const auto stays = [&] {
    EXPECT_TRUE(IsSameFolder(*replica, first->code_dir));
    EXPECT_TRUE(fs::exists(first->code_dir + "/handler.py"));
    EXPECT_EQ(TempFolders(), 0u);
  };
  fs::rename(request.archive_path, root_ + "/away.zip");
  EXPECT_FALSE(Build(request));
  stays();
  fs::rename(root_ + "/away.zip", request.archive_path);
  replace = true;
  EXPECT_THAT(Build(request), IsError(Code::kFailedPrecondition, HasSubstr("in place of")));
  stays();
  replace = false;
  const auto again = Build(request);
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->code_cached);
  EXPECT_EQ(fs::file_size(first->code_dir + "/data.txt"), 4u);
}

TEST_F(LayersTest, WithoutItsSumCodeGoesByItsContent) {
  Write("handler.py", "def handle(event): return event\n");
  const BuildRequest request = Zip("python3.11");
  const auto first = Build(request);
  ASSERT_THAT(first, IsOk());
  const auto replica = OpenFolder(first->code_dir);
  ASSERT_THAT(replica, IsOk());
  const std::string sum = root_ + "/layers/sums/code-" + request.source_hash.substr(7);
  const std::string was = ReadAll(sum);
  for (const bool restart : {false, true}) {
    for (const bool lost : {false, true}) {
      lost ? (void)fs::remove(sum) : fs::resize_file(sum, 0);
      if (restart) Open();
      const auto again = Build(request);
      ASSERT_THAT(again, IsOk());
      EXPECT_TRUE(again->code_cached);
      EXPECT_TRUE(IsSameFolder(*replica, first->code_dir));
      EXPECT_EQ(ReadAll(sum), was);
    }
  }
  fs::remove(sum);
  std::ofstream(first->code_dir + "/handler.py") << "def handle(event): return 0....\n";
  const auto again = Build(request);
  ASSERT_THAT(again, IsOk());
  EXPECT_FALSE(again->code_cached);
  EXPECT_FALSE(IsSameFolder(*replica, first->code_dir));
}

// Default rules leave out node_modules beside a lock file, and *.tfvars.
TEST_F(LayersTest, ALayerHasWhatTheSourceBroughtBack) {
  Write("package-lock.json", "{}");
  Write("node_modules/own/handler.js", "exports.handle = async () => 1;\n");
  Write("prod.tfvars", "x = 1\n");
  Write(".slessignore", "!node_modules/\n!prod.tfvars\n");
  BuildRequest request = Zip("nodejs20");
  request.entrypoint = "node_modules/own/handler.handle";
  const auto first = Build(request);
  ASSERT_THAT(first, IsOk());
  const auto replica = OpenFolder(first->code_dir);
  ASSERT_THAT(replica, IsOk());
  for (const bool restart : {false, true}) {
    fs::remove_all(root_ + "/layers/sums");
    fs::create_directory(root_ + "/layers/sums");
    if (restart) Open();
    const auto again = Build(request);
    ASSERT_THAT(again, IsOk());
    EXPECT_TRUE(again->code_cached);
    EXPECT_TRUE(IsSameFolder(*replica, first->code_dir));
  }
  BuildRequest wrong = request;
  wrong.entrypoint = "node_modules/own/handler.handel";
  EXPECT_THAT(Build(wrong), IsError(Code::kFailedPrecondition, HasSubstr("handel")));
  EXPECT_TRUE(IsSameFolder(*replica, first->code_dir));
  EXPECT_EQ(TempFolders(), 0u);
}

// Without a sandbox.
TEST_F(LayersTest, WhatFunctionsAddToALayerIsNoDamage) {
  Write("handler.py", "def handle(event): return event\n");
  const BuildRequest request = Zip("python3.11");
  BuildRequest wrong = request;
  wrong.entrypoint = "handler.handel";
  const auto first = Build(request);
  ASSERT_THAT(first, IsOk());
  const auto replica = OpenFolder(first->code_dir);
  ASSERT_THAT(replica, IsOk());
  fs::create_directory(first->code_dir + "/__pycache__");
  std::ofstream(first->code_dir + "/__pycache__/handler.cpython-311.pyc") << "compiled";
  fs::create_symlink("/etc/passwd", first->code_dir + "/link");
  for (const bool restart : {false, true}) {
    fs::remove(root_ + "/layers/sums/code-" + request.source_hash.substr(7));
    if (restart) Open();
    const auto again = Build(request);
    ASSERT_THAT(again, IsOk());
    EXPECT_TRUE(again->code_cached);
  }
  std::ofstream(first->code_dir + "/cache.json") << "{}";
  EXPECT_THAT(Build(wrong), IsError(Code::kFailedPrecondition, HasSubstr("handel")));
  EXPECT_TRUE(Build(request)->code_cached);
  EXPECT_TRUE(IsSameFolder(*replica, first->code_dir));
  EXPECT_EQ(TempFolders(), 0u);
}

// Of a version that left out less by default.
TEST_F(LayersTest, CodeThatAnotherVersionStoredIsBuilt) {
  Write("handler.py", "def handle(event): return event\n");
  Write("prod.tfvars", "x = 1\n");
  Write(".slessignore", "!prod.tfvars\n");
  BuildRequest request = Zip("python3.11");
  auto tree = source::ReadDirectory(root_ + "/source");
  ASSERT_THAT(tree, IsOk());
  tree->ignore_text.clear();
  std::ofstream out(request.archive_path, std::ios::binary);
  ASSERT_THAT(source::WriteZip(*tree,
                               [&](std::string_view bytes) {
                                 out << bytes;
                                 return base::Ok();
                               }),
              IsOk());
  out.close();
  const auto built = Build(request);
  ASSERT_THAT(built, IsOk());
  EXPECT_TRUE(fs::exists(built->code_dir + "/prod.tfvars"));
}

TEST_F(LayersTest, LinksAmongTheLayersAreNone) {
  Write("handler.py", "def handle(event): return event\n");
  const BuildRequest request = Zip("python3.11");
  const auto first = Build(request);
  ASSERT_THAT(first, IsOk());
  fs::rename(first->code_dir, root_ + "/elsewhere");
  fs::create_directory_symlink(root_ + "/elsewhere", first->code_dir);
  fs::create_directory_symlink("/etc", root_ + "/layers/deps/" + std::string(64, 'a'));
  Open();
  EXPECT_TRUE(fs::is_empty(root_ + "/layers/code"));
  EXPECT_TRUE(fs::is_empty(root_ + "/layers/deps"));
  EXPECT_TRUE(fs::exists(root_ + "/elsewhere/handler.py")) << "what it leads to stays";
  fs::create_directory_symlink(root_ + "/elsewhere", first->code_dir);
  const auto second = Build(request);
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(second->code_cached);
  EXPECT_FALSE(fs::is_symlink(first->code_dir));
}

}  // namespace
}  // namespace sless::build
