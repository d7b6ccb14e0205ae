#include <sys/stat.h>

#include <thread>

#include "client/base/strings.h"
#include "server/build/process/testing/process_builder_fixture.h"
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
using testing::HasSubstr;

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

}  // namespace
}  // namespace sless::build
