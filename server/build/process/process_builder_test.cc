#include "server/build/process/process_builder.h"

#include <cstdlib>
#include <thread>

#include "server/build/process/installer.h"
#include "server/build/process/testing/process_builder_fixture.h"

namespace sless::build {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::IsError;
using base::IsOk;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::HasSubstr;

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
