#include "server/build/process/process_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "client/base/spawn.h"
#include "client/base/testing/result_matchers.h"
#include "client/source/source.h"
#include "server/build/process/installer.h"
#include "server/build/process/run_logged.h"

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
    for (char** word = environ; *word != nullptr; ++word) {
      const std::string text = *word;
      const size_t equals = text.find('=');
      if (text.starts_with("PIP_") || text.starts_with("npm_config_"))
        options.environment[text.substr(0, equals)] = text.substr(equals + 1);
    }
    for (const auto& [name, value] : environment_) options.environment[name] = value;
    if (getenv("HOME") != nullptr) options.home = getenv("HOME");
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
  BuildRequest Zip(const std::string& runtime) {
    const auto tree = source::ReadDirectory(root_ + "/source");
    EXPECT_THAT(tree, IsOk());
    const std::string zip = root_ + "/code.zip";
    std::ofstream out(zip, std::ios::binary);
    EXPECT_THAT(source::WriteZip(*tree,
                                 [&](std::string_view bytes) {
                                   out << bytes;
                                   return base::Ok();
                                 }),
                IsOk());
    return {"default", "fn", runtime, "handler.handle", source::TreeHash(*tree), zip, ""};
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
  Open();
  EXPECT_EQ(TempFolders(), 0u);
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
  Write("package-lock.json", "{}");
  EXPECT_NE(node, key("nodejs20", "h1"));
  Write("node_modules/ms/index.js", "");
  EXPECT_EQ(key("nodejs20", "h1"), "none") << "brings its own";
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
