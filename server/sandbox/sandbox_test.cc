#include "server/sandbox/sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "client/base/fd.h"
#include "client/base/spawn.h"
#include "client/base/strings.h"
#include "client/base/testing/result_matchers.h"

namespace sless::sandbox {
namespace {

namespace fs = std::filesystem;

// bubblewrap mounts in the order of its arguments: what comes later lies on top.
TEST(SandboxArguments, APathBelowTmpIsNotHiddenByThePrivateTmp) {
  Sandbox sandbox;
  sandbox.read_only = {"/tmp/cache/node"};
  const auto args = Arguments(sandbox);
  const auto tmp = std::find(args.begin(), args.end(), "/tmp");
  const auto node = std::find(args.begin(), args.end(), "/tmp/cache/node");
  ASSERT_NE(tmp, args.end());
  ASSERT_NE(node, args.end());
  EXPECT_LT(tmp - args.begin(), node - args.begin());
}

class RealSandbox : public testing::Test {
 protected:
  RealSandbox() {
    char name[] = "/tmp/sless-test-XXXXXX";
    root_ = mkdtemp(name);
    sandbox_.etc_dir = root_ + "/etc";
    EXPECT_THAT(WriteEtc(sandbox_.etc_dir), base::IsOk());
  }
  ~RealSandbox() override {
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  std::string Folder(const std::string& name) {
    fs::create_directories(root_ + "/" + name);
    return root_ + "/" + name;
  }
  std::vector<std::string> Run(const std::string& script) {
    base::SpawnOptions spawn;
    spawn.command = {base::FindProgram("bwrap", "/usr/bin:/bin:/usr/local/bin")};
    const auto args = Arguments(sandbox_);
    spawn.command.insert(spawn.command.end(), args.begin(), args.end());
    spawn.command.insert(spawn.command.end(), {"--", "/bin/sh", "-c", script});
    spawn.environment = {"PATH=/usr/bin:/bin"};
    KeepToOwnSockets(spawn);
    const base::SystemClock clock;
    const auto output =
        base::RunCommand(spawn, base::Deadline::After(clock, std::chrono::seconds(20)), clock);
    EXPECT_THAT(output, base::IsOk());
    if (!output) return {};
    EXPECT_TRUE(output->exit.ok()) << output->text;
    auto lines = base::Split(output->text, '\n');
    if (!lines.empty() && lines.back().empty()) lines.pop_back();
    return lines;
  }

  std::string root_;
  Sandbox sandbox_;
};

TEST_F(RealSandbox, AFileCanBeShownInAWritableFolder) {
  const std::string work = Folder("work"), code = Folder("code");
  std::ofstream(work + "/settings").flush();
  std::ofstream(root_ + "/given") << "given\n";
  sandbox_.binds = {{code, "/var/task"}, {root_ + "/given", "/build/settings"}};
  sandbox_.writable = {{work, "/build"}};
  EXPECT_THAT(Run("cat /build/settings; for f in /build/settings /build/new /var/task/new /new "
                  "/usr/new /etc/new /dev/new /tmp/new; do (: >> $f) 2>/dev/null && echo $f; done; "
                  "true"),
              testing::ElementsAre("given", "/build/new", "/tmp/new"));
}

// Where the tests run as root, the sandbox's user is root to the files of /proc.
TEST_F(RealSandbox, NothingInProcIsForTheHostsRootAlone) {
  EXPECT_THAT(Run(R"(
for f in /proc/[a-z]*; do
  [ -f "$f" ] || continue
  case $(stat -c %A "$f") in
    ???????r??) ;;
    *) head -c 1 "$f" >/dev/null 2>&1 && echo "read $f" ;;
  esac
done
find /proc/[a-z]* -type f ! -path '/proc/self/*' ! -path '/proc/thread-self/*' 2>/dev/null |
while read f; do (: >> "$f") 2>/dev/null && echo "write $f"; done
true)"),
              testing::IsEmpty());
}

// The network is the host's, and abstract sockets belong to it.
TEST_F(RealSandbox, AbstractSocketsOfOthersAreOutOfReach) {
  if (syscall(SYS_landlock_create_ruleset, nullptr, 0, 1) < 6) GTEST_SKIP() << "needs Linux 6.12";
  const std::string name = "sless-test" + root_;
  sockaddr_un address{AF_UNIX, {}};
  std::copy(name.begin(), name.end(), address.sun_path + 1);
  const base::Fd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address),
                 offsetof(sockaddr_un, sun_path) + 1 + name.size()),
            0);
  ASSERT_EQ(listen(listener.get(), 5), 0);
  const std::string connect =
      "/usr/bin/python3 -Ic 'import socket\n"
      "def unix(): return socket.socket(socket.AF_UNIX)\n"
      "own = unix(); own.bind(\"\\0own\"); own.listen(); unix().connect(\"\\0own\")\n"
      "try: unix().connect(\"\\0" +
      name + "\"); print(\"reached\")\nexcept PermissionError: print(\"out of reach\")'";
  EXPECT_THAT(Run(connect), testing::ElementsAre("out of reach"));
}

TEST(SandboxAlwaysThere, IsWhatEverySandboxShows) {
  for (const char* path : {"/usr", "/usr/share/ca.pem", "/etc/ssl/certs/ca-certificates.crt",
                           "/etc/resolv.conf", "/usr/../usr/lib"})
    EXPECT_TRUE(AlwaysThere(path)) << path;
  for (const char* path : {"/", "/usrlocal", "/etc", "/etc/ssl/private", "/etc/pip.conf",
                           "/usr/../etc/shadow", "/opt/ca.pem"})
    EXPECT_FALSE(AlwaysThere(path)) << path;
}

}  // namespace
}  // namespace sless::sandbox
