#include "server/build/process/process_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>
#include <thread>

#include "client/base/spawn.h"
#include "client/base/strings.h"
#include "client/base/testing/result_matchers.h"
#include "client/source/source.h"
#include "client/transport/testing/http_imposter.h"
#include "server/build/process/installer.h"
#include "server/build/process/run_logged.h"
#include "server/build/process/written_tree.h"

namespace sless::build {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::IsError;
using base::IsOk;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

class ProcessBuilderTest : public testing::Test {
 protected:
  ProcessBuilderTest() {
    char name[] = "/tmp/sless-test-XXXXXX";
    root_ = mkdtemp(name);
    Open();
  }
  ~ProcessBuilderTest() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  ProcessBuilderOptions Options() {
    ProcessBuilderOptions options;
    options.dir = root_ + "/layers";
    options.path = getenv("PATH");
    for (char** word = environ; *word != nullptr && home_.empty(); ++word) {
      const std::string text = *word;
      const size_t equals = text.find('=');
      if (text.starts_with("PIP_") || text.starts_with("npm_config_"))
        options.environment[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const auto& [name, value] : environment_) options.environment[name] = value;
    options.sandbox = sandbox_;
    options.max_install_bytes = max_install_bytes_;
    if (sync_) options.sync = sync_;
    options.home = home_;
    if (home_.empty() && getenv("HOME") != nullptr) options.home = getenv("HOME");
    return options;
  }
  void Open() {
    auto made = MakeProcessBuilder(Options(), clock_, log_);
    ASSERT_THAT(made, IsOk());
    builder_ = std::move(*made);
  }
  void Write(const std::string& name, const std::string& text) {
    const fs::path path = root_ + "/source/" + name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  source::Tree ZipFolder(const std::string& folder, const std::string& zip) {
    auto tree = source::ReadDirectory(folder);
    EXPECT_THAT(tree, IsOk());
    std::ofstream out(zip, std::ios::binary);
    EXPECT_THAT(source::WriteZip(*tree,
                                 [&](std::string_view bytes) {
                                   out << bytes;
                                   return base::Ok();
                                 }),
                IsOk());
    return std::move(*tree);
  }
  BuildRequest Zip(const std::string& runtime) {
    const std::string zip = root_ + "/code.zip";
    const auto tree = ZipFolder(root_ + "/source", zip);
    return {"default", "fn", runtime, "handler.handle", source::TreeHash(tree), zip, ""};
  }
  base::Result<BuildOutput> Build(const BuildRequest& request, milliseconds most = seconds(120),
                                  std::stop_token stop = {}) {
    lines_.clear();
    return builder_->Build(request, base::Deadline::After(clock_, most), stop,
                           [&](std::string_view line) { lines_.emplace_back(line); });
  }
  size_t TempFolders() const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(root_ + "/layers/tmp"), fs::directory_iterator()));
  }

  std::string root_;
  bool sandbox_ = true;
  uint64_t max_install_bytes_ = 4ull << 30;
  std::string home_;  // where given, nothing is taken from this process
  std::function<base::Status(const std::string&)> sync_;
  std::map<std::string, std::string> environment_;  // beside that of this process
  base::SystemClock clock_;
  base::NullLogger log_;
  std::vector<std::string> lines_;
  std::unique_ptr<Builder> builder_;
};

TEST_F(ProcessBuilderTest, UnpacksOnceAndFindsItAgain) {
  Write("handler.py", "def handle(event): return event\n");
  Write("requirements.txt", "# nothing\n\n");
  const BuildRequest request = Zip("python3.11");
  const auto first = Build(request);
  ASSERT_THAT(first, IsOk());
  EXPECT_FALSE(first->code_cached);
  EXPECT_EQ(first->deps_dir, "");
  EXPECT_TRUE(fs::exists(first->code_dir + "/handler.py"));
  const auto second = Build(request);
  ASSERT_THAT(second, IsOk());
  EXPECT_TRUE(second->code_cached);
  EXPECT_EQ(second->code_dir, first->code_dir);
  EXPECT_EQ(TempFolders(), 0u);
}

TEST_F(ProcessBuilderTest, ALayerLiesOnTheDiskBeforeItHasItsName) {
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

TEST_F(ProcessBuilderTest, InlineCodeBecomesAFile) {
  const std::string code = "exports.handle = async (event) => event;\n";
  const auto tree = source::InlineTree("nodejs20", "handler.handle", code);
  ASSERT_THAT(tree, IsOk());
  const auto built =
      Build({"default", "fn", "nodejs20", "handler.handle", source::TreeHash(*tree), "", code});
  ASSERT_THAT(built, IsOk());
  EXPECT_TRUE(fs::exists(built->code_dir + "/handler.js"));
}

TEST_F(ProcessBuilderTest, AMissingHandlerFailsTheBuild) {
  Write("handler.py", "def handel(event): return event\n");
  const auto built = Build(Zip("python3.11"));
  ASSERT_THAT(built, IsError(Code::kFailedPrecondition, HasSubstr("handle")));
  EXPECT_EQ(built.error().reason, "BuildFailed");
}

TEST_F(ProcessBuilderTest, ABrokenArchiveLeavesNothing) {
  Write("handler.py", "def handle(event): return event\n");
  BuildRequest request = Zip("python3.11");
  fs::resize_file(request.archive_path, 30);
  EXPECT_THAT(Build(request), IsError(Code::kInvalidArgument, testing::_));
  EXPECT_TRUE(fs::is_empty(root_ + "/layers/code"));
  EXPECT_EQ(TempFolders(), 0u);
}

TEST_F(ProcessBuilderTest, OtherContentThanPromisedIsRefused) {
  Write("handler.py", "def handle(event): return event\n");
  BuildRequest request = Zip("python3.11");
  request.source_hash = "sha256:" + std::string(64, 'a');
  EXPECT_THAT(Build(request), IsError(Code::kInternal, HasSubstr("want sha256:aaaa")));
  request.source_hash = "sha256:../../../etc";
  EXPECT_THAT(Build(request), IsError(Code::kInternal, HasSubstr("no content hash")));
}

TEST_F(ProcessBuilderTest, ManyBuildsOfOneLayerShareTheWork) {
  Write("handler.py", "def handle(event): return event\n");
  const BuildRequest request = Zip("python3.11");
  std::atomic<int> made{0}, failed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto built = builder_->Build(request, base::Deadline::After(clock_, seconds(30)), {},
                                         [](std::string_view) {});
      if (!built)
        ++failed;
      else if (!built->code_cached)
        ++made;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(made, 1);
}

TEST_F(ProcessBuilderTest, WhatAKilledBuildLeftIsRemoved) {
  fs::create_directories(root_ + "/layers/tmp/abc/layer");
  std::ofstream(root_ + "/layers/sums/code-abc.next") << "1 2\n";
  Open();
  EXPECT_EQ(TempFolders(), 0u);
  EXPECT_TRUE(fs::is_empty(root_ + "/layers/sums"));
}

TEST_F(ProcessBuilderTest, CollectKeepsWhatIsUsedOrYoung) {
  for (const char* name : {"used", "old", "young"})
    fs::create_directories(root_ + "/layers/code/" + name);
  const auto hours_ago = fs::file_time_type::clock::now() - std::chrono::hours(2);
  for (const char* name : {"used", "old"})
    fs::last_write_time(root_ + "/layers/code/" + name, hours_ago);
  EXPECT_THAT(builder_->Collect({root_ + "/layers/code/used"}), IsOk());
  EXPECT_TRUE(fs::exists(root_ + "/layers/code/used"));
  EXPECT_TRUE(fs::exists(root_ + "/layers/code/young"));
  EXPECT_FALSE(fs::exists(root_ + "/layers/code/old"));
}

TEST_F(ProcessBuilderTest, ManifestsKeyTheLayerByWhatIsInstalled) {
  const auto key = [&](const std::string& runtime, const std::string& hash) {
    const auto manifest = ReadManifest(root_ + "/source", runtime, hash, [](std::string_view) {});
    EXPECT_THAT(manifest, IsOk());
    return manifest && *manifest ? (*manifest)->key : "none";
  };
  Write("handler.py", "");
  EXPECT_EQ(key("python3.11", "h1"), "none");
  Write("requirements.txt", "six==1.16.0\n");
  const std::string plain = key("python3.11", "h1");
  EXPECT_EQ(plain, key("python3.11", "h2")) << "a change of code alone installs nothing";
  Write("requirements.txt", "-r other.txt\n");
  EXPECT_NE(key("python3.11", "h1"), key("python3.11", "h2"));
  Write("package.json", R"({"name":"x","version":"1"})");
  EXPECT_EQ(key("nodejs20", "h1"), "none");
  Write("package.json", R"({"version":"1","dependencies":{"ms":"2.1.3"}})");
  const std::string node = key("nodejs20", "h1");
  Write("package.json", R"({"version":"2","scripts":{"x":"y"},"dependencies":{"ms":"2.1.3"}})");
  EXPECT_EQ(node, key("nodejs20", "h1"))
      << "a version of the package itself changes nothing that is installed";
  // npm may take one of them for what a production package needs.
  Write("package.json", R"({"dependencies":{"ms":"2.1.3"},"devDependencies":{"x":"npm:y@1.0.0"}})");
  EXPECT_NE(node, key("nodejs20", "h1"));
  Write("package.json", R"({"version":"2","dependencies":{"ms":"2.1.3"}})");
  Write("package-lock.json", "{}");
  EXPECT_NE(node, key("nodejs20", "h1"));
  Write("node_modules/ms/index.js", "");
  EXPECT_EQ(key("nodejs20", "h1"), "none") << "brings its own";
}

// Two functions with the same manifest share a layer only where nothing of it can lie in a source.
TEST_F(ProcessBuilderTest, WhatMayBeAFileOfTheSourceIsKeyedByTheSource) {
  struct Row {
    const char* text;
    bool shared;
  };
  const auto shared = [&](const std::string& runtime) {
    const auto read = [&](const char* hash) {
      return ReadManifest(root_ + "/source", runtime, hash, [](std::string_view) {});
    };
    const auto one = read("h1"), other = read("h2");
    EXPECT_THAT(one, IsOk());
    return one && *one && (*one)->key == (*other)->key;
  };
  for (const Row& row : {
           Row{"six", true},
           Row{"# Gr\xc3\xbc\xc3\x9f"
               "e\r\n\nsix==1.16.0 # why\r\n",
               true},
           Row{"zope.interface>=5,<7,!=6.0.*", true},
           Row{"requests[security, socks] ~= 2.31 ; python_version < '4'", true},
           Row{"six==1.16.0 \\\n  --hash=sha256:aa11 \\\n  --hash=sha256:bb22\n", true},
           Row{"https://host/six-1.16.0-py2.py3-none-any.whl", true},
           Row{"https://host/a.whl ; python_version > '3'", true},
           Row{"wheels/mypkg-1.0-py3-none-any.whl", false},
           Row{"six\nmypkg-1.0-py3-none-any.whl", false},
           Row{"mypkg-1.0.ZIP", false},
           Row{"mypkg-1.0.tar.gz[extra]; python_version > '3'", false},
           Row{"vendor/mypkg", false},
           Row{"./vendor/mypkg", false},
           Row{"ven\\\ndor/mypkg", false},
           Row{"mypkg-1.0.w\\\nhl", false},
           Row{"mypkg @ file:///var/task/mypkg", false},
           Row{"mypkg @ https://host/mypkg.whl", false},
           Row{"https://${HOST}/mypkg.whl", false},
           Row{"git+file:///var/task", false},
           Row{"-r other.txt", false},
           Row{"six --config-settings=x=y", false},
           Row{"# a\rvendor/mypkg\nsix", false},
           Row{"six # a\xe2\x80\xa8vendor/mypkg", false},
           Row{"# -*- coding: cp037 -*-\nsix", false},
       }) {
    Write("requirements.txt", row.text);
    EXPECT_EQ(shared("python3.11"), row.shared) << row.text;
  }
  const std::string ms = R"({"dependencies":{"ms":"2.1.3"})";
  for (const Row& row : {
           Row{R"({"dependencies":{"a":"^1.0.0 || ~2","b":"latest","c":"npm:@x/c@1"}})", true},
           Row{R"({"dependencies":{"a":"https://host/a.tgz","b":"user/repo#v1"}})", true},
           Row{R"({"dependencies":{"a":"git+https://host/a.git"}})", true},
           Row{R"({"dependencies":{"a":"1"},"overrides":{"b":{"c":"$a"}}})", true},
           Row{R"({"dependencies":{"a":"git+file:///var/task"}})", false},
           Row{R"({"dependencies":{"a":"workspace:*"}})", false},
           Row{R"({"dependencies":{"a":"1"},"overrides":{"b":{"c":"file:x"}}})", false},
       }) {
    Write("package.json", row.text);
    EXPECT_EQ(shared("nodejs20"), row.shared) << row.text;
  }
  Write("package.json", ms + "}");
  for (const Row& row : {
           Row{R"({"packages":{"":{"dependencies":{"ms":"2.1.3"}},"node_modules/ms":
               {"resolved":"https://host/ms.tgz","integrity":"sha512-x","bin":{"ms":"./x"}}}})",
               true},
           Row{R"({"packages":{"node_modules/ms":{"resolved":"file:ms.tgz"}}})", false},
           Row{R"({"packages":{"node_modules/ms":{"resolved":"ms","link":true}}})", false},
           Row{R"({"packages":{"ms":{"version":"1"}}})", false},
           Row{R"({"dependencies":{"ms":{"version":"file:ms.tgz"}}})", false},
       }) {
    Write("package-lock.json", row.text);
    EXPECT_EQ(shared("nodejs20"), row.shared) << row.text;
  }
  fs::remove(root_ + "/source/package-lock.json");
  for (const Row& row : {
           Row{"# ours\nregistry=https://host/\n//host/:_authToken=${TOKEN}\n", true},
           Row{"legacy-peer-deps = true\n@x:registry=https://host/x/\nfetch-retries=2", true},
           Row{"cache=/var/task/cache", false},
           Row{"git=evil", false},
           Row{"//host/:certfile=/var/task/x", false},
           Row{"registry=file:///var/task", false},
       }) {
    Write(".npmrc", row.text);
    EXPECT_EQ(shared("nodejs20"), row.shared) << row.text;
  }
}

TEST_F(ProcessBuilderTest, NpmPackagesOfTheSourceAreRefused) {
  Write("handler.js", "exports.handle = () => 1;\n");
  Write("vendor/mypkg/package.json", "{}");
  for (const char* spec : {"file:vendor/mypkg", "./vendor/mypkg", "vendor/mypkg", "~/x", "/etc",
                           "../../x", "vendor/mypkg.tgz", "mypkg.TAR.GZ", "link:x", "a/b/c"}) {
    for (const std::string field : {"dependencies", "optionalDependencies"}) {
      Write("package.json", "{\"" + field + "\":{\"mypkg\":\"" + spec + "\"}}");
      const auto built = Build(Zip("nodejs20"));
      ASSERT_THAT(built, IsError(Code::kFailedPrecondition,
                                 HasSubstr(field + ": \"mypkg\" is a local path")))
          << spec;
      EXPECT_EQ(built.error().source.file, "package.json");
    }
  }
}

TEST_F(ProcessBuilderTest, ABrokenManifestNamesItself) {
  Write("handler.js", "exports.handle = () => 1;\n");
  Write("package.json", "{\"dependencies\": {");
  const auto built = Build(Zip("nodejs20"));
  ASSERT_THAT(built, IsError(Code::kFailedPrecondition, HasSubstr("package.json")));
  EXPECT_EQ(built.error().source.file, "package.json");
  Write("package.json", R"({"dependencies":{"near":"file:../near"}})");
  EXPECT_THAT(Build(Zip("nodejs20")),
              IsError(Code::kFailedPrecondition, HasSubstr("\"near\" is a local path")));
  for (const std::string field : {"dependencies", "optionalDependencies", "peerDependencies"}) {
    Write("package.json", "{\"" + field + "\":[\"ms\"]}");
    const auto listed = Build(Zip("nodejs20"));
    ASSERT_THAT(listed, IsError(Code::kFailedPrecondition, HasSubstr(field + ": want an object")));
    EXPECT_EQ(listed.error().source.file, "package.json");
  }
  Write("package.json", R"({"dependencies":[],"peerDependencies":null,"workspaces":[]})");
  EXPECT_THAT(Build(Zip("nodejs20")), IsOk()) << "asks for nothing";
  Write("package.json", R"({"dependencies":{"ms":"2.1.3"}})");
  for (const char* name : {"package-lock.json", "npm-shrinkwrap.json"}) {
    Write(name, "{\n  <<<<<<< ours\n");
    const auto unlocked = Build(Zip("nodejs20"));
    ASSERT_THAT(unlocked, IsError(Code::kFailedPrecondition, HasSubstr(name)));
    EXPECT_EQ(unlocked.error().source.file, name);
    EXPECT_EQ(unlocked.error().source.line, 2);
  }
}

TEST_F(ProcessBuilderTest, WorkspacesAreRefused) {
  Write("handler.js", "exports.handle = () => 1;\n");
  Write("ws/w1/package.json", R"({"name":"w1"})");
  for (const char* text : {R"({"workspaces":["ws/*"]})", R"({"workspaces":{"packages":["ws/*"]}})",
                           R"({"dependencies":{"ms":"2.1.3"},"workspaces":["ws/*"]})"}) {
    Write("package.json", text);
    const auto built = Build(Zip("nodejs20"));
    ASSERT_THAT(built, IsError(Code::kFailedPrecondition,
                               AllOf(HasSubstr("workspaces"), HasSubstr("relative paths"))))
        << text;
    EXPECT_EQ(built.error().reason, "BuildFailed");
    EXPECT_EQ(built.error().source.file, "package.json");
  }
  Write("node_modules/w1/index.js", "");
  EXPECT_THAT(Build(Zip("nodejs20")), IsOk()) << "brings its own";
}

TEST_F(ProcessBuilderTest, AnImpossibleRequirementNamesItsLine) {
  Write("handler.py", "def handle(event): return event\n");
  Write("requirements.txt", "# comment\n./no/such/folder\n");
  const auto built = Build(Zip("python3.11"));
  ASSERT_THAT(built, IsError(Code::kFailedPrecondition, HasSubstr("requirements.txt failed")));
  EXPECT_EQ(built.error().reason, "BuildFailed");
  EXPECT_EQ(built.error().source.file, "requirements.txt");
  EXPECT_FALSE(built.error().source.log_tail.empty());
  EXPECT_TRUE(fs::is_empty(root_ + "/layers/deps"));
  EXPECT_EQ(TempFolders(), 0u);
}

TEST_F(ProcessBuilderTest, AnUnreachableRegistryIsSaidToBeOne) {
  environment_ = {{"PIP_INDEX_URL", "http://127.0.0.1:1/simple"},
                  {"PIP_RETRIES", "1"},
                  {"npm_config_registry", "http://127.0.0.1:1"},
                  {"npm_config_fetch_retries", "0"}};
  Open();
  Write("handler.py", "def handle(event): return event\n");
  Write("requirements.txt", "six==1.16.0\n");
  const auto python = Build(Zip("python3.11"));
  const auto said = AllOf(HasSubstr("cannot reach its package registry"), HasSubstr("refused"));
  ASSERT_THAT(python, IsError(Code::kFailedPrecondition, said));
  EXPECT_EQ(python.error().reason, "RegistryUnreachable");
  Write("handler.js", "exports.handle = () => 1;\n");
  Write("package.json", R"({"dependencies":{"ms":"2.1.3"}})");
  const auto node = Build(Zip("nodejs20"));
  const auto in_capitals =
      AllOf(HasSubstr("cannot reach its package registry"), HasSubstr("ECONNREFUSED"));
  ASSERT_THAT(node, IsError(Code::kFailedPrecondition, in_capitals));
  EXPECT_EQ(node.error().reason, "RegistryUnreachable");
}

TEST_F(ProcessBuilderTest, ADeadlineEndsTheInstallation) {
  Write("handler.py", "def handle(event): return event\n");
  Write("requirements.txt", "./no/such/folder\n");
  const auto built = Build(Zip("python3.11"), milliseconds(1));
  ASSERT_THAT(built, IsError(Code::kDeadlineExceeded, testing::_));
  EXPECT_EQ(built.error().reason, "BuildTimeout");
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// --- layers that the disk lost something of

TEST_F(ProcessBuilderTest, ADamagedLayerIsMadeAgain) {
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
TEST_F(ProcessBuilderTest, ALayerMadeAgainLeavesReplicasTheirFiles) {
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
TEST_F(ProcessBuilderTest, ALayerMadeAgainIsNeverMissing) {
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

TEST_F(ProcessBuilderTest, FoldersAreExchanged) {
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

TEST_F(ProcessBuilderTest, ALayerThatCannotBeMadeAgainStays) {
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

TEST_F(ProcessBuilderTest, WithoutItsSumCodeGoesByItsContent) {
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
TEST_F(ProcessBuilderTest, ALayerHasWhatTheSourceBroughtBack) {
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
TEST_F(ProcessBuilderTest, WhatFunctionsAddToALayerIsNoDamage) {
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
TEST_F(ProcessBuilderTest, CodeThatAnotherVersionStoredIsBuilt) {
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

TEST_F(ProcessBuilderTest, LinksAmongTheLayersAreNone) {
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

// --- hostile packages, built in the real sandbox

class HostilePackage : public ProcessBuilderTest {
 protected:
  HostilePackage() {
    Write("handler.py", "def handle(event): return event\n");
    Write("requirements.txt", "./evil\n");
    Write("evil/pyproject.toml",
          "[build-system]\nrequires = []\nbuild-backend = 'back'\nbackend-path = ['.']\n");
  }
  /// `code` runs while pip builds the package, `later` in a process of its own that outlives the
  /// build of the wheel.
  BuildRequest Package(const std::string& code, const std::string& later = "pass") {
    std::string indented;
    for (const auto& line : base::Split(later, '\n')) indented += "    " + line + "\n";
    Write("evil/back.py", R"(
import os, socket, stat, sys, time, zipfile
def wait_for(path):
    for _ in range(2000):
        if os.path.exists(path): return
        time.sleep(0.005)
def later():
)" + indented + R"(
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = 'evil-1.0-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(wheel_directory, name), 'w') as z:
        z.writestr('evil/__init__.py', 'A = 1\n')
        z.writestr('evil-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n')
        z.writestr('evil-1.0.dist-info/WHEEL',
                   'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
        z.writestr('evil-1.0.dist-info/RECORD', '')
    if os.fork() == 0:
        os.setsid()
        null = os.open('/dev/null', os.O_RDWR)
        for fd in (0, 1, 2): os.dup2(null, fd)
        try: later()
        finally: os._exit(0)
)" + "    " + code + "\n    return name\n");
    return Zip("python3.11");
  }
  std::string OnlyLayer() {
    const fs::directory_iterator layers(root_ + "/layers/deps");
    return layers == fs::directory_iterator() ? "" : layers->path().string();
  }
};

TEST_F(HostilePackage, InstallsLikeAnyOther) {
  const auto built = Build(Package("pass"));
  ASSERT_THAT(built, IsOk()) << testing::PrintToString(lines_);
  EXPECT_TRUE(fs::exists(built->deps_dir + "/evil/__init__.py"));
  EXPECT_TRUE(Build(Package("pass"))->deps_cached);
}

TEST_F(HostilePackage, ADamagedInstallationStaysUntilTheNextIsMade) {
  const BuildRequest request = Package("pass");
  const auto first = Build(request);
  ASSERT_THAT(first, IsOk()) << testing::PrintToString(lines_);
  const std::string layer = first->deps_dir;
  const auto replica = OpenFolder(layer);
  ASSERT_THAT(replica, IsOk());
  const auto lazy = [&] { return faccessat(replica->get(), "evil/__init__.py", R_OK, 0) == 0; };

  // Nothing tells whether it lacks anything, so it serves on until it is needed for a build.
  const std::string sum = root_ + "/layers/sums/deps-" + fs::path(layer).filename().string();
  fs::remove(sum);
  Open();
  EXPECT_TRUE(IsSameFolder(*replica, layer));
  EXPECT_THAT(Build(request, milliseconds(1)), IsError(Code::kDeadlineExceeded, testing::_));
  EXPECT_TRUE(IsSameFolder(*replica, layer));
  EXPECT_TRUE(lazy());
  EXPECT_EQ(TempFolders(), 0u);

  fs::remove(layer + "/evil-1.0.dist-info/METADATA");
  const auto again = Build(request);
  ASSERT_THAT(again, IsOk()) << testing::PrintToString(lines_);
  EXPECT_FALSE(again->deps_cached);
  EXPECT_FALSE(IsSameFolder(*replica, layer));
  EXPECT_TRUE(fs::exists(layer + "/evil-1.0.dist-info/METADATA"));
  EXPECT_TRUE(lazy());
  EXPECT_TRUE(Build(request)->deps_cached);
}

// A damaged layer is not measured by what was to take its place, be the server killed or the disk
// full before it did.
TEST_F(HostilePackage, ASumSpeaksOfItsOwnTreeAlone) {
  sandbox_ = false;  // where it sees what is to be different each time
  bool fails = false;
  sync_ = [&](const std::string&) -> base::Status {
    if (fails) return base::Err(Code::kUnavailable, "disk full");
    return base::Ok();
  };
  Open();
  std::ofstream(root_ + "/large");
  const BuildRequest request = Package(
      "zipfile.ZipFile(os.path.join(wheel_directory, name), 'a').writestr('evil/more.py', "
      "'#' * 10000 if os.path.exists('" +
      root_ + "/large') else '')");
  const auto first = Build(request);
  ASSERT_THAT(first, IsOk()) << testing::PrintToString(lines_);
  const std::string metadata = first->deps_dir + "/evil-1.0.dist-info/METADATA";
  fs::resize_file(metadata, 0);
  fs::remove(root_ + "/large");
  fails = true;
  EXPECT_THAT(Build(request), IsError(Code::kUnavailable, HasSubstr("disk full")));
  EXPECT_EQ(fs::file_size(metadata), 0u) << "stays as it was";
  fails = false;
  const auto again = Build(request);
  ASSERT_THAT(again, IsOk()) << testing::PrintToString(lines_);
  EXPECT_FALSE(again->deps_cached);
  EXPECT_GT(fs::file_size(metadata), 0u);
  EXPECT_TRUE(Build(request)->deps_cached);
}

TEST_F(HostilePackage, CannotPutALinkInPlaceOfTheLayer) {
  fs::create_directory(root_ + "/host");
  std::ofstream(root_ + "/host/secret") << "x";
  const std::string swap = R"(
wait_for('/build/layer/evil-1.0.dist-info/METADATA')
for _ in range(400):
    try:
        os.rename('/build/layer', '/build/l2')
        os.symlink(')" + root_ +
                           R"(/host', '/build/layer')
        break
    except OSError: time.sleep(0.005))";
  for (int i = 0; i < 3; ++i) {
    const auto built = Build(Package("pass  # " + std::to_string(i), swap));
    const std::string layer = OnlyLayer();
    if (built) {
      EXPECT_EQ(layer, built->deps_dir);
      EXPECT_FALSE(fs::is_symlink(layer));
      EXPECT_TRUE(fs::exists(layer + "/evil/__init__.py"));
      fs::remove_all(layer);
    } else {
      EXPECT_EQ(layer, "");
    }
    EXPECT_TRUE(fs::exists(root_ + "/host/secret"));
  }
}

TEST_F(HostilePackage, ALinkInPlaceOfTheLayerIsNoLayer) {
  sandbox_ = false;  // where nothing keeps it from making one
  Open();
  fs::create_directory(root_ + "/host");
  const std::string layer = "os.environ['HOME'] + '/../layer'";
  const auto built = Build(Package("os.rename(" + layer + ", " + layer + " + '2'); os.symlink('" +
                                   root_ + "/host', " + layer + ")"));
  EXPECT_THAT(built, IsError(Code::kFailedPrecondition, HasSubstr("in place of the folder")));
  EXPECT_EQ(OnlyLayer(), "");
  EXPECT_TRUE(fs::exists(root_ + "/host"));
  EXPECT_EQ(TempFolders(), 0u);
}

TEST_F(HostilePackage, NothingOfItRunsOnceTheBuildHasEnded) {
  const auto built = Build(Package("pass", R"(
beat = os.open('/build/layer/beat', os.O_CREAT | os.O_WRONLY | os.O_APPEND)
for i in range(30000):
    os.write(beat, b'x')
    time.sleep(0.001))"));
  ASSERT_THAT(built, IsOk()) << testing::PrintToString(lines_);
  const auto last = fs::file_size(built->deps_dir + "/beat");
  EXPECT_GT(last, 0u);
  std::this_thread::sleep_for(milliseconds(50));
  EXPECT_EQ(fs::file_size(built->deps_dir + "/beat"), last);
}

TEST_F(HostilePackage, ASocketInTheLayerIsRefused) {
  const auto built = Build(Package("socket.socket(socket.AF_UNIX).bind('/build/layer/sock')"));
  EXPECT_THAT(built, IsError(Code::kFailedPrecondition, HasSubstr("left a socket")));
  EXPECT_EQ(OnlyLayer(), "");
}

TEST_F(HostilePackage, MayNotFillTheDisk) {
  max_install_bytes_ = 16 << 20;
  Open();
  const std::string fill =
      "[os.posix_fallocate(os.open('/build/%d' % i, os.O_CREAT | os.O_WRONLY), 0, 8 << 20) "
      "for i in range(4)]";
  const auto said = AllOf(HasSubstr("requirements.txt failed"), HasSubstr("more than 16 MiB"));
  const auto begin = clock_.Steady();
  auto built = Build(Package(fill + "; time.sleep(200)"), seconds(300));
  ASSERT_THAT(built, IsError(Code::kFailedPrecondition, said));
  EXPECT_EQ(built.error().reason, "BuildFailed");
  EXPECT_LT(clock_.Steady() - begin, seconds(100)) << "it is ended at once";
  EXPECT_THAT(Build(Package("[open('/build/home/%d' % i, 'w') for i in range(5000)]")),
              IsError(Code::kFailedPrecondition, said))
      << "files without contents take room too";
  EXPECT_EQ(TempFolders(), 0u);
}

TEST_F(HostilePackage, WhatItMakesUnreadableOrDeepIsRemoved) {
  const std::string deep =
      "[(os.mkdir('d'), os.chdir('d')) for os_ in [os.mkdir('/build/home/q'), "
      "os.chdir('/build/home/q')] for _ in range(1500)]";
  const std::string modes =
      "os.makedirs('/build/home/r/s/t'); open('/build/home/r/s/t/f', 'w'); "
      "[os.chmod(d, 0) for d in ('/build/home/r/s/t', '/build/home/r/s', '/build/home/r')]; ";
  EXPECT_THAT(Build(Package(modes)), IsOk()) << testing::PrintToString(lines_);
  EXPECT_EQ(TempFolders(), 0u);
  const auto built = Build(Package(modes + deep));
  EXPECT_THAT(built, IsError(Code::kFailedPrecondition, HasSubstr("nested deeper")));
  EXPECT_EQ(TempFolders(), 0u);
}

// --- the server's settings, in the real sandbox

// A registry that the server's settings name, and a proxy on the way to all others, which must not
// be asked.
class RegistryOfTheServer : public ProcessBuilderTest {
 protected:
  RegistryOfTheServer() {
    home_ = root_ + "/home";
    for (const char* name : {"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"})
      environment_[name] = elsewhere_.Url();
    for (const char* name : {"NO_PROXY", "no_proxy"}) environment_[name] = "127.0.0.1";
    elsewhere_.Handle([](const transport::RecordedRequest&) {
      return transport::ImposterAnswer{.status = 403, .body = "not this way"};
    });
    environment_["PIP_RETRIES"] = "0";
    environment_["npm_config_fetch_retries"] = "0";
  }
  void WriteAt(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path) << text;
  }
  std::string Authorization() const {
    const auto requests = registry_.Requests();
    return requests.empty() ? "" : std::string(requests.back().headers.Get("authorization"));
  }
  std::string WithPassword() const {
    return "http://ci:sesame-open@127.0.0.1:" + std::to_string(registry_.Port());
  }
  void ServeWheel() {
    const std::string info = root_ + "/wheel/only_here-1.0.dist-info/";
    WriteAt(root_ + "/wheel/only_here.py", "here = True\n");
    WriteAt(info + "METADATA", "Metadata-Version: 2.1\nName: only-here\nVersion: 1.0\n");
    WriteAt(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n");
    WriteAt(info + "RECORD", "");
    ZipFolder(root_ + "/wheel", root_ + "/only.whl");
    registry_.On("GET", "/simple/only-here/",
                 {{.body = "<a href=\"/only_here-1.0-py3-none-any.whl\">x</a>",
                   .headers = {{"Content-Type", "text/html"}}}});
    registry_.On("GET", "/only_here-1.0-py3-none-any.whl",
                 {{.body = ReadAll(root_ + "/only.whl")}});
  }
  void ServeTarball() {
    WriteAt(root_ + "/tar/package/package.json", R"({"name":"only-here","version":"1.0.0"})");
    base::SpawnOptions tar;
    tar.command = {"/usr/bin/env", "tar",          "-czf",   root_ + "/only.tgz",
                   "-C",           root_ + "/tar", "package"};
    tar.environment = {"PATH=/usr/bin:/bin"};
    const auto done = base::RunCommand(tar, base::Deadline::After(clock_, seconds(20)), clock_);
    ASSERT_THAT(done, IsOk());
    ASSERT_TRUE(done->exit.ok()) << done->text;
    registry_.On(
        "GET", "/only-here",
        {{.body = R"({"name":"only-here","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":
                     {"name":"only-here","version":"1.0.0","dist":{"tarball":")" +
                  registry_.Url() + R"(/only.tgz"}}}})",
          .headers = {{"Content-Type", "application/json"}}}});
    registry_.On("GET", "/only.tgz", {{.body = ReadAll(root_ + "/only.tgz")}});
  }
  void BuildsFromIt(const std::string& runtime, const std::string& file,
                    const std::string& field = "dependencies") {
    Open();
    if (runtime == "nodejs20") {
      ServeTarball();
      Write("handler.js", "exports.handle = () => 1;\n");
      Write("package.json", "{\"" + field + "\":{\"only-here\":\"1.0.0\"}}");
    } else {
      ServeWheel();
      Write("handler.py", "def handle(event): return event\n");
      Write("requirements.txt", "only-here==1.0\n");
    }
    const auto built = Build(Zip(runtime));
    ASSERT_THAT(built, IsOk()) << testing::PrintToString(lines_);
    EXPECT_TRUE(fs::exists(built->deps_dir + file));
    EXPECT_EQ(elsewhere_.Requests().size(), 0u);
    EXPECT_THAT(lines_, testing::Not(Contains(HasSubstr("sesame-open"))));
  }

  const std::string kWheel = "/only_here.py", kPackage = "/node_modules/only-here/package.json";
  transport::HttpImposter registry_, elsewhere_;
};

// A package that looks around while pip builds it, and brings along what it saw.
constexpr const char* kLooksAround = R"(
import os, resource, stat, sys, zipfile

def get_requires_for_build_wheel(settings=None):
    return []

def listed(path):
    try:
        return sorted(os.listdir(path))
    except OSError as e:
        return [type(e).__name__]

def look():
    for line in open("/proc/self/mountinfo"):
        words = line.split()
        kind = words[words.index("-") + 1]
        yield "mount %s %s" % (words[4], words[5].split(",")[0])
    for path in ("/", "/etc", "/dev", "/build", "/build/home", "/var", "/sys", "/run", "/root", "/home", "/tmp", "/proc/acpi"):
        for name in listed(path):
            yield "file %s/%s" % (path.rstrip("/"), name)
    for name in os.environ:
        yield "env " + name
    yield "npm token %s" % any("npm-sesame" in v for v in os.environ.values())
    yield "uid %d gid %d" % (os.getuid(), os.getgid())
    yield "processes %d %d" % resource.getrlimit(resource.RLIMIT_NPROC)
    yield "core %d %d" % resource.getrlimit(resource.RLIMIT_CORE)
    for line in open("/proc/self/status"):
        if line.startswith(("CapEff", "CapBnd", "NoNewPrivs")):
            yield line.strip().replace("\t", " ")
    for fd in os.listdir("/proc/self/fd"):
        if int(fd) > 2:
            try:
                target = os.readlink("/proc/self/fd/" + fd)
            except OSError:
                continue
            if not target.startswith(("/proc/", "pipe:")):
                yield "fd " + target

def build_wheel(folder, settings=None, metadata=None):
    name = "look-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("look.txt", "\n".join(look()))
        wheel.writestr("look-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: look\nVersion: 1.0\n")
        wheel.writestr("look-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("look-1.0.dist-info/RECORD", "")
    return name
)";

TEST_F(RegistryOfTheServer, ABuildSeesThisAndNothingElse) {
  if (!fs::exists("/usr/bin/python3.11")) GTEST_SKIP() << "a Python elsewhere is shown as well";
  WriteAt(home_ + "/.npmrc", "//h/:_authToken=npm-sesame\n");
  WriteAt(home_ + "/.netrc", "machine h password other\n");
  WriteAt(home_ + "/.config/pip/pip.conf", "[global]\nno-index = true\n");
  environment_["npm_config__auth"] = "npm-sesame";
  Open();
  Write("handler.py", "def handle(event): return event\n");
  Write("requirements.txt", "./look\n");
  Write("look/pyproject.toml",
        "[build-system]\nrequires = []\nbuild-backend = \"look\"\nbackend-path = [\".\"]\n"
        "[project]\nname = \"look\"\nversion = \"1.0\"\n");
  Write("look/look.py", kLooksAround);
  const auto built = Build(Zip("python3.11"));
  ASSERT_THAT(built, IsOk()) << testing::PrintToString(lines_);
  const auto seen = base::Split(ReadAll(built->deps_dir + "/look.txt"), '\n');
  EXPECT_THAT(seen, Contains("mount / ro"));
  EXPECT_THAT(seen, Contains("mount /usr ro"));
  EXPECT_THAT(seen, Contains("mount /build rw"));
  EXPECT_THAT(seen, Contains("mount /build/layer rw"));
  EXPECT_THAT(seen, Contains("mount /var/task ro"));
  EXPECT_THAT(seen, Contains("mount /build/home/.config/pip/pip.conf ro"));
  EXPECT_THAT(seen, Contains("npm token False"));
  EXPECT_THAT(seen, Contains("uid 1000 gid 1000"));
  EXPECT_THAT(seen, Contains("processes 1024 1024"));
  EXPECT_THAT(seen, Contains("core 0 0"));
  EXPECT_THAT(seen, Contains("CapEff: 0000000000000000"));
  EXPECT_THAT(seen, Contains("NoNewPrivs: 1"));
  const std::regex may(
      "mount /(proc|tmp|dev/shm|build|build/layer|dev/(null|zero|full|random|urandom|tty|pts)) rw"
      "|mount /(proc/[^ ]*|usr[^ ]*|s?bin|lib[^ ]*|dev|var/task|) ro"
      "|mount /build/home/.config/pip/pip.conf ro"
      "|(mount|file) /etc/(resolv.conf|hosts|nsswitch.conf|host.conf|gai.conf|protocols|services"
      "|localtime|ld.so.(cache|conf|conf.d)|alternatives|mime.types|ssl(/certs|/openssl.cnf)?"
      "|ca-certificates|pki|passwd|group|pip.conf|xdg)( ro)?"
      "|file /(bin|build|dev|etc|lib|lib32|lib64|libx32|proc|sbin|tmp|usr|var)"
      "|file /dev/(core|fd|full|null|ptmx|pts|random|shm|std(err|in|out)|tty|urandom|zero)"
      "|file /build/(home|layer)|file /build/home/(.config|pip-.*|tmp.*)|file /var/task"
      "|file /(sys|run|root|home)/FileNotFoundError"
      "|env (PATH|HOME|LANG|TMPDIR|PWD|OLDPWD|PIP_.*|(HTTPS?|NO|https?|no)_(PROXY|proxy))"
      "|env (PYTHON(NOUSERSITE|PATH)|_?(PEP517|PYPROJECT_HOOKS)_.*)"  // pip's own
      "|npm token False|uid 1000 gid 1000|processes 1024 1024|core 0 0|NoNewPrivs: 1"
      "|Cap(Eff|Bnd): 0+|fd /build/home/.*");
  for (const auto& line : seen) EXPECT_TRUE(std::regex_match(line, may)) << line;
}

TEST_F(RegistryOfTheServer, ABackendThatPrintsItsEnvironmentPrintsNoPassword) {
  environment_["PIP_EXTRA_INDEX_URL"] = WithPassword() + "/simple";
  WriteAt(home_ + "/.config/pip/pip.conf", "[global]\nindex-url = " + WithPassword() + "/simple\n");
  Open();
  Write("handler.py", "def handle(event): return event\n");
  Write("requirements.txt", "# mine\n./mine\n");
  Write("mine/pyproject.toml",
        "[build-system]\nrequires = []\nbuild-backend = \"mine\"\nbackend-path = [\".\"]\n");
  Write("mine/mine.py",
        "import os\nprint(dict(os.environ))\n"
        "print(open(os.path.expanduser('~/.config/pip/pip.conf')).read().split('@')[0][-11:])\n"
        "raise RuntimeError(os.environ['PIP_EXTRA_INDEX_URL'])\n");
  const auto built = Build(Zip("python3.11"));
  ASSERT_THAT(built, IsError(Code::kFailedPrecondition,
                             AllOf(HasSubstr("RuntimeError: http://***@127.0.0.1"),
                                   testing::Not(HasSubstr("sesame-open")))));
  EXPECT_EQ(built.error().source.line, 2);
  EXPECT_THAT(lines_, Contains(HasSubstr("'PIP_EXTRA_INDEX_URL': 'http://***@127.0.0.1")));
  EXPECT_THAT(lines_, testing::Not(Contains(HasSubstr("sesame-open"))));
  EXPECT_THAT(built.error().source.log_tail, testing::Not(Contains(HasSubstr("sesame-open"))));
}

TEST_F(RegistryOfTheServer, ByPipConf) {
  WriteAt(home_ + "/.config/pip/pip.conf", "[global]\nindex-url = " + WithPassword() + "/simple\n");
  BuildsFromIt("python3.11", kWheel);
  EXPECT_THAT(Authorization(), testing::StartsWith("Basic "));
}

TEST_F(RegistryOfTheServer, ByTheOlderPipConf) {
  WriteAt(home_ + "/.pip/pip.conf", "[global]\nindex-url = " + registry_.Url() + "/simple\n");
  BuildsFromIt("python3.11", kWheel);
}

TEST_F(RegistryOfTheServer, ByAFileThatTheEnvironmentNames) {
  WriteAt(root_ + "/company/pip.conf",
          "[install]\nno-index = true\nfind-links =\n    " + root_ + "/wheels\n");
  environment_["PIP_CONFIG_FILE"] = root_ + "/company/pip.conf";
  ServeWheel();
  fs::create_directories(root_ + "/wheels");
  fs::copy_file(root_ + "/only.whl", root_ + "/wheels/only_here-1.0-py3-none-any.whl");
  BuildsFromIt("python3.11", kWheel);
}

TEST_F(RegistryOfTheServer, ByTheEnvironment) {
  environment_["PIP_INDEX_URL"] = WithPassword() + "/simple";
  BuildsFromIt("python3.11", kWheel);
}

TEST_F(RegistryOfTheServer, ByNpmrc) {
  const std::string token = "//127.0.0.1:" + std::to_string(registry_.Port()) + "/:_authToken";
  WriteAt(home_ + "/.npmrc", "registry=" + registry_.Url() + "/\n" + token + "=sesame-open\n");
  BuildsFromIt("nodejs20", kPackage);
  EXPECT_EQ(Authorization(), "Bearer sesame-open");
}

TEST_F(RegistryOfTheServer, ByAnNpmrcThatTheEnvironmentNames) {
  WriteAt(root_ + "/company/npmrc", "registry=" + registry_.Url() + "/\n");
  environment_["NPM_CONFIG_USERCONFIG"] = root_ + "/company/npmrc";
  BuildsFromIt("nodejs20", kPackage);
}

TEST_F(RegistryOfTheServer, ByTheEnvironmentOfNpm) {
  environment_["npm_config_registry"] = registry_.Url();
  BuildsFromIt("nodejs20", kPackage);
}

TEST_F(RegistryOfTheServer, PeersAloneAreInstalledToo) {
  environment_["npm_config_registry"] = registry_.Url();
  BuildsFromIt("nodejs20", kPackage, "peerDependencies");
}

base::SpawnOptions Shell(const std::string& script) {
  base::SpawnOptions options;
  options.command = {"/bin/sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin"};
  return options;
}

TEST(RunLogged, GivesLinesAndTheExit) {
  const base::SystemClock clock;
  std::vector<std::string> lines;
  const auto exit = RunLogged(Shell("echo one; echo two >&2; printf three; exit 3"),
                              base::Deadline::After(clock, seconds(10)), clock, {},
                              [&](std::string_view line) { lines.emplace_back(line); });
  ASSERT_THAT(exit, IsOk());
  EXPECT_EQ(exit->code, 3);
  EXPECT_THAT(lines, ElementsAre("one", "two", "three"));
}

TEST(RunLogged, ADeadlineAndAStopKillTheWholeGroup) {
  const base::SystemClock clock;
  const auto begin = clock.Steady();
  EXPECT_THAT(
      RunLogged(Shell("sleep 60 & sleep 60"), base::Deadline::After(clock, milliseconds(200)),
                clock, {}, [](std::string_view) {}),
      IsError(Code::kDeadlineExceeded, testing::_));
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(milliseconds(100));
    stop.request_stop();
  });
  EXPECT_THAT(RunLogged(Shell("sleep 60 & sleep 60"), base::Deadline::After(clock, seconds(50)),
                        clock, stop.get_token(), [](std::string_view) {}),
              IsError(Code::kCancelled, testing::_));
  stopper.join();
  EXPECT_LT(clock.Steady() - begin, seconds(5));
}

// --- with a package registry

class WithNetwork : public ProcessBuilderTest {
 protected:
  void SetUp() override {
    if (getenv("SLESS_TEST_NETWORK") == nullptr)
      GTEST_SKIP() << "needs a package registry: set SLESS_TEST_NETWORK=1";
  }
};

TEST_F(WithNetwork, PipInstallsOnceForTwoSources) {
  Write("handler.py", "import six\ndef handle(event): return six.__version__\n");
  Write("requirements.txt", "six==1.16.0\n");
  const auto first = Build(Zip("python3.11"));
  ASSERT_THAT(first, IsOk()) << testing::PrintToString(lines_);
  EXPECT_TRUE(fs::exists(first->deps_dir + "/six.py"));
  Write("handler.py", "import six\ndef handle(event): return 2\n");
  const auto second = Build(Zip("python3.11"));
  ASSERT_THAT(second, IsOk());
  EXPECT_FALSE(second->code_cached);
  EXPECT_TRUE(second->deps_cached);
  EXPECT_EQ(second->deps_dir, first->deps_dir);
  Write("requirements.txt", "# two\nsix==1.16.0\nno-such-package-of-sless==9.9\n");
  const auto failed = Build(Zip("python3.11"));
  ASSERT_THAT(
      failed,
      IsError(Code::kFailedPrecondition,
              HasSubstr("No matching distribution found for no-such-package-of-sless==9.9")));
  EXPECT_EQ(failed.error().source.line, 3);
}

TEST_F(WithNetwork, NpmInstallsProductionPackages) {
  Write("handler.js", "exports.handle = () => require('ms')('2h');\n");
  Write("package.json",
        R"({"dependencies":{"ms":"2.1.3"},"devDependencies":{"left-pad":"1.3.0"}})");
  const auto built = Build(Zip("nodejs20"));
  ASSERT_THAT(built, IsOk()) << testing::PrintToString(lines_);
  EXPECT_TRUE(fs::exists(built->deps_dir + "/node_modules/ms/package.json"));
  EXPECT_FALSE(fs::exists(built->deps_dir + "/node_modules/left-pad"));
}

}  // namespace
}  // namespace sless::build
