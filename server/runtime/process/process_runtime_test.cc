#include "server/runtime/process/process_runtime.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <thread>

#include "client/base/fd.h"
#include "client/base/guarded.h"
#include "client/base/spawn.h"
#include "client/base/strings.h"
#include "client/base/testing/result_matchers.h"

namespace sless::runtime {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::IsError;
using base::IsOk;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class TempDir {
 public:
  TempDir() {
    char name[] = "/tmp/sless-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string Write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path_ + "/" + name).parent_path());
    std::ofstream(path_ + "/" + name) << text;
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

// One request to a runner; "" where nobody listens.
std::string Send(const std::string& endpoint, const std::string& method, const std::string& target,
                 const std::string& body, seconds timeout = seconds(20)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, endpoint.c_str() + 5, sizeof address.sun_path - 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval wait{timeout.count(), 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
  std::string text;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    const std::string request = fmt::format(
        "{} {} HTTP/1.1\r\nHost: x\r\nX-Request-Id: req-1\r\nConnection: close\r\nContent-Length: "
        "{}\r\n\r\n{}",
        method, target, body.size(), body);
    for (size_t done = 0; done < request.size();) {
      const ssize_t n = send(fd, request.data() + done, request.size() - done, MSG_NOSIGNAL);
      if (n <= 0) break;
      done += static_cast<size_t>(n);
    }
    char buffer[65536];
    for (ssize_t n; (n = recv(fd, buffer, sizeof buffer, 0)) > 0;)
      text.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return text;
}
std::string Event(const Replica& replica, const std::string& json) {
  return Send(replica.endpoint, "POST", "/event", json);
}

// Command lines and numbers of our processes whose command line has `word`.
std::vector<std::string> Processes(const std::string& word) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    std::ifstream in(entry.path() / "cmdline");
    std::stringstream text;
    text << in.rdbuf();
    std::string line = text.str();
    std::replace(line.begin(), line.end(), '\0', ' ');
    if (base::Contains(line, word)) found.push_back(entry.path().filename().string() + " " + line);
  }
  return found;
}

class ProcessRuntimeTest : public testing::Test {
 protected:
  void SetUp() override { Open(); }
  void TearDown() override { runtime_.reset(); }

  ProcessOptions Options() {
    ProcessOptions options;
    options.state_dir = state_.path() + "/runtime";
    options.runner = runner_;
    options.runtimes_dir = SLESS_RUNTIMES;
    options.path = getenv("PATH");
    options.grace = seconds(5);
    options.first_backoff = milliseconds(200);
    options.sandbox = sandbox_;
    return options;
  }
  void Open() {
    auto made = MakeProcessRuntime(
        Options(), clock_, log_,
        {[this](const RevisionKey&, const std::string&, const ReplicaLine& line) {
           lines_.With([&](auto& lines) {
             lines.push_back(line.stream + "|" + line.request_id + "|" + line.line);
           });
         },
         [this] { return behind_.load(); }});
    ASSERT_THAT(made, IsOk());
    runtime_ = std::move(*made);
    runtime_->OnChange([this](const RevisionKey&) {
      std::lock_guard lock(mutex_);
      changed_.notify_all();
    });
  }

  ReplicaSpec Python(const std::string& code) {
    const std::string dir = fmt::format("{}/code{}", state_.path(), ++codes_);
    fs::create_directories(dir);
    std::ofstream(dir + "/handler.py") << code;
    ReplicaSpec spec;
    spec.runtime = "python3.11";
    spec.entrypoint = "handler.handle";
    spec.code_dir = dir;
    spec.timeout_sec = 10;
    return spec;
  }
  ReplicaSpec Node(const std::string& code) {
    ReplicaSpec spec = Python("");
    std::ofstream(spec.code_dir + "/handler.mjs") << code;
    spec.runtime = "nodejs20";
    return spec;
  }

  // Waits until `done(replicas)`; the replicas at the end of it.
  template <class Done>
  std::vector<Replica> Until(const Done& done, seconds most = seconds(30)) {
    const auto until = std::chrono::steady_clock::now() + most;
    std::unique_lock lock(mutex_);
    for (;;) {
      auto replicas = runtime_->Observe(key_);
      if (done(replicas) || std::chrono::steady_clock::now() > until) return replicas;
      changed_.wait_for(lock, milliseconds(50));
    }
  }
  std::vector<Replica> UntilReady(size_t count) {
    return Until([&](const auto& replicas) {
      return replicas.size() == count &&
             std::all_of(replicas.begin(), replicas.end(),
                         [](const auto& r) { return r.state == ReplicaState::kReady; });
    });
  }
  Replica Ready(const ReplicaSpec& spec) {
    EXPECT_THAT(runtime_->Ensure(key_, spec, 1), IsOk());
    const auto replicas = UntilReady(1);
    if (replicas.size() != 1 || replicas[0].state != ReplicaState::kReady) {
      ADD_FAILURE() << "not ready: "
                    << (replicas.empty() || !replicas[0].failure ? ""
                                                                 : replicas[0].failure->message)
                    << Lines();
      return {};
    }
    return replicas[0];
  }
  Replica Failed(const ReplicaSpec& spec) {
    EXPECT_THAT(runtime_->Ensure(key_, spec, 1), IsOk());
    const auto replicas =
        Until([](const auto& r) { return r.size() == 1 && r[0].state == ReplicaState::kFailed; });
    return replicas.empty() ? Replica{} : replicas[0];
  }
  std::string Lines() {
    return lines_.With([](const auto& lines) {
      std::string all;
      for (const auto& line : lines) all += "\n" + line;
      return all;
    });
  }

  bool sandbox_ = true;
  std::string runner_ = SLESS_RUNNER;
  TempDir state_;
  base::SystemClock clock_;
  base::NullLogger log_;
  base::Guarded<std::vector<std::string>> lines_;
  std::atomic<bool> behind_{false};  // whoever keeps the lines can take no more
  std::mutex mutex_;
  std::condition_variable changed_;
  // No other test of this machine has this name: Processes() looks at all processes.
  RevisionKey key_{"default", fmt::format("fn-{}", ::getpid()), 3};
  int codes_ = 0;
  std::unique_ptr<Runtime> runtime_;
};

TEST_F(ProcessRuntimeTest, RunsPythonAndStopsWithNothingLeft) {
  ReplicaSpec spec = Python(
      "import os\ndef handle(event, context):\n  print('seen', event)\n  return [event, "
      "os.environ['KEY'], context.revision]\n");
  spec.environment["KEY"] = "s3cret-value";
  const Replica replica = Ready(spec);
  EXPECT_THAT(Event(replica, "{\"a\":1}"),
              AllOf(HasSubstr("200 OK"), HasSubstr(R"([{\"a\":1},\"s3cret-value\",3])")));
  EXPECT_THAT(Processes("s3cret-value"), ElementsAre()) << "a secret is in a command line";
  EXPECT_FALSE(Processes("default/" + key_.name).empty());
  Until([&](const auto&) { return base::Contains(Lines(), "seen"); });
  EXPECT_THAT(Lines(), HasSubstr("stdout|req-1|seen {'a': 1}"));
  EXPECT_THAT(runtime_->Ensure(key_, spec, 0), IsOk());
  EXPECT_TRUE(Until([](const auto& r) { return r.empty(); }).empty());
  EXPECT_THAT(Processes("default/" + key_.name), ElementsAre());
  EXPECT_EQ(Send(replica.endpoint, "GET", "/healthz", ""), "");
}

TEST_F(ProcessRuntimeTest, RunsNodeWithItsDependencies) {
  ReplicaSpec spec = Node(
      "import a from 'left';\nimport { createRequire } from 'node:module';\n"
      "const require = createRequire(import.meta.url);\n"
      "export const handle = async (event) => [a.name, require('left').name, event];\n");
  state_.Write("deps/node_modules/left/package.json", R"({"name":"left","main":"index.js"})");
  state_.Write("deps/node_modules/left/index.js", "module.exports = {name: 'the dependency'};");
  spec.deps_dir = state_.path() + "/deps";
  EXPECT_THAT(Event(Ready(spec), "5"), HasSubstr(R"([\"the dependency\",\"the dependency\",5])"));
}

TEST_F(ProcessRuntimeTest, PythonFindsItsDependencies) {
  ReplicaSpec spec = Python("import left\ndef handle(event): return left.NAME\n");
  state_.Write("deps/left.py", "NAME = 'the dependency'\n");
  spec.deps_dir = state_.path() + "/deps";
  EXPECT_THAT(Event(Ready(spec), "5"), HasSubstr("the dependency"));
}

// A link would be followed on the host: to whatever the server may read.
TEST_F(ProcessRuntimeTest, LayersThatAreLinksAreRefused) {
  fs::create_directories(state_.path() + "/real/node_modules");
  fs::create_directory_symlink(state_.path() + "/real", state_.path() + "/link");
  fs::create_directories(state_.path() + "/deps");
  fs::create_directory_symlink("/etc", state_.path() + "/deps/node_modules");
  const auto refused = [&](const ReplicaSpec& spec) {
    const Replica replica = Failed(spec);
    ASSERT_TRUE(replica.failure);
    EXPECT_THAT(replica.failure->message, HasSubstr("is no folder"));
    EXPECT_THAT(runtime_->Ensure(key_, spec, 0), IsOk());
    ++key_.revision;
  };
  ReplicaSpec spec = Python("def handle(event): return event\n");
  spec.deps_dir = state_.path() + "/link";
  refused(spec);
  spec.deps_dir.clear();
  fs::create_directory_symlink(spec.code_dir, state_.path() + "/code-link");
  spec.code_dir = state_.path() + "/code-link";
  refused(spec);
  ReplicaSpec node = Node("export const handle = async (event) => event;\n");
  node.deps_dir = state_.path() + "/deps";
  refused(node);
}

TEST_F(ProcessRuntimeTest, TheSandboxShowsLittleAndLetsWriteLess) {
  state_.Write("secret.txt", "data of the server");
  const std::string code = R"(
import os, glob
def attempt(action):
    try:
        return action()
    except BaseException as e:
        return type(e).__name__
def read(path):
    with open(path) as f: return f.read()
def write(path):
    with open(path, "a") as f: pass  # opening is enough; nothing of a host shall change when this fails
    return "written"
def handle(event):
    return {
        "server": attempt(lambda: read("%STATE%/secret.txt")),
        "root": sorted(os.listdir("/")),
        "pids": [p for p in os.listdir("/proc") if p.isdigit()],
        "peers": [attempt(lambda: os.listdir(p)) for p in glob.glob("/proc/[0-9]*/root")],
        "runner_mem": attempt(lambda: open("/proc/%d/mem" % os.getppid(), "rb")) if os.getppid() > 0 else "",
        "runner_fds": attempt(lambda: os.readlink("/proc/%d/fd/1" % os.getppid())),
        "sysrq": attempt(lambda: open("/proc/sysrq-trigger", "w")),
        "kcore": attempt(lambda: open("/proc/kcore", "rb").read(1) == b""),
        "core_pattern": attempt(lambda: write("/proc/sys/kernel/core_pattern")),
        "code": attempt(lambda: write("/var/task/x")),
        "usr": attempt(lambda: write("/usr/x")),
        "rootdir": attempt(lambda: write("/x")),
        "etc": attempt(lambda: write("/etc/passwd")),
        "shadow": attempt(lambda: read("/etc/shadow")),
        "home": attempt(lambda: os.listdir("/root")),
        "tmp": attempt(lambda: write("/tmp/x")),
        "env": sorted(k for k in os.environ),
        "caps": [l for l in read("/proc/self/status").split("\n") if l.startswith(("CapEff", "NoNewPrivs", "Uid"))],
        "fds": sorted(int(f) for f in os.listdir("/proc/self/fd")),
        "tmpsize": os.statvfs("/tmp").f_blocks * os.statvfs("/tmp").f_frsize,
    }
)";
  std::string text = code;
  text.replace(text.find("%STATE%"), 7, state_.path());
  setenv("SERVER_SECRET", "must not leak", 1);
  ReplicaSpec spec = Python(text);
  spec.environment["MINE"] = "1";
  const std::string seen = Event(Ready(spec), "1");
  const auto has = [&](const std::string& escaped) { EXPECT_THAT(seen, HasSubstr(escaped)); };
  has(R"(\"server\":\"FileNotFoundError\")");
  EXPECT_THAT(seen, testing::AnyOf(HasSubstr(R"(\"core_pattern\":\"OSError\")"),
                                   HasSubstr(R"(\"core_pattern\":\"PermissionError\")")));
  has(R"(Uid:\\t1000)");
  // Not every kernel has these two.
  EXPECT_THAT(seen, testing::AnyOf(HasSubstr(R"(\"sysrq\":\"OSError\")"),
                                   HasSubstr(R"(\"sysrq\":\"FileNotFoundError\")")));
  EXPECT_THAT(seen, testing::AnyOf(HasSubstr(R"(\"kcore\":true)"),
                                   HasSubstr(R"(\"kcore\":\"FileNotFoundError\")")));
  has(R"(\"code\":\"OSError\")");
  has(R"(\"usr\":\"OSError\")");
  has(R"(\"rootdir\":\"OSError\")");
  has(R"(\"shadow\":\"FileNotFoundError\")");
  has(R"(\"home\":\"FileNotFoundError\")");
  has(R"(\"runner_mem\":\"PermissionError\")");
  has(R"(\"runner_fds\":\"PermissionError\")");
  has(R"(\"tmp\":\"written\")");
  has(R"(CapEff:\\t0000000000000000)");
  has(R"(NoNewPrivs:\\t1)");
  EXPECT_THAT(seen, Not(HasSubstr("SERVER_SECRET")));
  has(R"(\"HOME\",\"LANG\",\"MINE\",\"PATH\",\"SLESS_FUNCTION\")");
  unsetenv("SERVER_SECRET");
}

TEST_F(ProcessRuntimeTest, AStartFailureHasFileLineAndLog) {
  const Replica replica = Failed(Python("print('loading')\nimport nosuch\n"));
  ASSERT_TRUE(replica.failure);
  EXPECT_EQ(replica.failure->reason, "StartFailed");
  EXPECT_THAT(replica.failure->message, HasSubstr("ModuleNotFoundError: No module named 'nosuch'"));
  EXPECT_EQ(replica.failure->file, "handler.py");
  EXPECT_EQ(replica.failure->line, 2);
  EXPECT_THAT(replica.failure->log_tail, testing::Contains("loading"));
}

TEST_F(ProcessRuntimeTest, AReplicaThatDiesWithoutACallIsStartedAgainWithBackoff) {
  const ReplicaSpec spec = Python(
      "import os, threading\nthreading.Timer(1, lambda: os.kill(os.getpid(), 11)).start()\n"
      "def handle(event): pass\n");
  const Replica replica = Ready(spec);
  const auto failed =
      Until([](const auto& r) { return r.size() == 1 && r[0].state == ReplicaState::kFailed; });
  ASSERT_EQ(failed.size(), 1u);
  ASSERT_TRUE(failed[0].failure);
  EXPECT_EQ(failed[0].failure->reason, "Crashed");
  EXPECT_THAT(failed[0].failure->message, HasSubstr("signal 11"));
  EXPECT_GT(failed[0].next_start, clock_.Steady());
  const auto again = UntilReady(1);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].restarts, 1);
  EXPECT_EQ(again[0].id, replica.id);
}

TEST_F(ProcessRuntimeTest, AReplicaThatACallEndedIsStartedAgainAtOnceHoweverOften) {
  const ReplicaSpec spec = Python("import os\ndef handle(event): os.kill(os.getpid(), 11)\n");
  const Replica replica = Ready(spec);
  for (int crash = 1; crash <= 8; ++crash) {
    EXPECT_THAT(Event(replica, "1"),
                AllOf(HasSubstr("X-Sless-Error: ReplicaDied"), HasSubstr("signal 11")));
    // A wait that grew would be longer than this looks for it.
    const auto again = Until(
        [&](const auto& r) {
          return r.size() == 1 && r[0].state == ReplicaState::kReady && r[0].restarts == crash;
        },
        seconds(10));
    ASSERT_EQ(again.size(), 1u);
    EXPECT_FALSE(again[0].failure);
  }
}

TEST_F(ProcessRuntimeTest, OutOfMemoryIsReportedAsSuch) {
  ReplicaSpec spec =
      Python("def handle(event):\n  x = []\n  while True: x.append(bytearray(8 << 20))\n");
  spec.memory_mb = 96;
  const Replica replica = Ready(spec);
  const std::string answer = Event(replica, "1");
  // By cgroup the process is killed; by RLIMIT_DATA the handler gets a MemoryError.
  EXPECT_THAT(answer, testing::AnyOf(HasSubstr("out of memory"), HasSubstr("MemoryError")));
  if (base::Contains(answer, "MemoryError")) return;
  const auto failed =
      Until([](const auto& r) { return r.size() == 1 && r[0].state == ReplicaState::kFailed; });
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].failure->reason, "OutOfMemory");
  EXPECT_THAT(failed[0].failure->message, HasSubstr("memory_mb is 96"));
}

TEST_F(ProcessRuntimeTest, AForkBombStaysSmall) {
  ReplicaSpec spec = Python(R"(
import os, time, signal
def handle(event):
    children = []
    try:
        for i in range(2000):
            pid = os.fork()
            if pid == 0:
                time.sleep(30)
                os._exit(0)
            children.append(pid)
        text = "no limit"
    except OSError as e:
        text = type(e).__name__
    for pid in children: os.kill(pid, signal.SIGKILL)
    for pid in children: os.waitpid(pid, 0)
    return [text, len(children) < 600]
)");
  spec.memory_mb = 2048;  // the memory limit shall not be the first to end it
  EXPECT_THAT(Event(Ready(spec), "1"), HasSubstr(R"([\"BlockingIOError\",true])"));
}

TEST_F(ProcessRuntimeTest, ScalesUpAndDownAndRetiresTheIdleOne) {
  const ReplicaSpec spec = Python("def handle(event): return event\n");
  EXPECT_THAT(runtime_->Ensure(key_, spec, 3), IsOk());
  const auto three = UntilReady(3);
  ASSERT_EQ(three.size(), 3u);
  EXPECT_THAT(runtime_->Retire(key_, spec, 2, three[0].id), IsOk());
  const auto two = Until([](const auto& r) { return r.size() == 2; });
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].id, three[1].id);
  EXPECT_EQ(two[1].id, three[2].id);
}

size_t OpenDescriptors() {
  return static_cast<size_t>(std::distance(fs::directory_iterator("/proc/self/fd"), {}));
}

TEST_F(ProcessRuntimeTest, FiftyStartsLeaveNoDescriptorBehind) {
  const ReplicaSpec spec = Python("def handle(event): return event\n");
  const ReplicaSpec broken = Python("import nowhere\n");
  const auto start_and_stop = [&](const ReplicaSpec& what, int count) {
    EXPECT_THAT(runtime_->Ensure(key_, what, count), IsOk());
    Until([&](const auto& replicas) {
      return replicas.size() == static_cast<size_t>(count) &&
             std::none_of(replicas.begin(), replicas.end(),
                          [](const auto& r) { return r.state == ReplicaState::kStarting; });
    });
    EXPECT_THAT(runtime_->Ensure(key_, what, 0), IsOk());
    EXPECT_TRUE(Until([](const auto& r) { return r.empty(); }).empty());
  };
  start_and_stop(spec, 1);
  const auto before = OpenDescriptors();
  for (int i = 0; i < 4; ++i) start_and_stop(spec, 10);
  start_and_stop(broken, 10);
  EXPECT_LE(OpenDescriptors(), before);
}

TEST_F(ProcessRuntimeTest, ADrainLetsARunningCallEnd) {
  const ReplicaSpec spec = Python(
      "import time\ndef handle(event):\n  print('began', flush=True)\n  time.sleep(1)\n  return "
      "'whole'\n");
  const Replica replica = Ready(spec);
  std::string answer;
  std::thread caller([&] { answer = Event(replica, "1"); });
  Until([&](const auto&) { return base::Contains(Lines(), "began"); });
  EXPECT_THAT(runtime_->Ensure(key_, spec, 0), IsOk());
  Until([](const auto& r) { return r.size() == 1 && r[0].state == ReplicaState::kStopping; });
  EXPECT_TRUE(runtime_->LayersInUse().contains(spec.code_dir)) << "it may load more of it";
  caller.join();
  EXPECT_THAT(answer, HasSubstr("whole"));
  EXPECT_TRUE(Until([](const auto& r) { return r.empty(); }).empty());
}

TEST_F(ProcessRuntimeTest, WhoPrintsMoreThanCanBeKeptWaitsAndLosesNothing) {
  ReplicaSpec spec = Python(
      "def handle(event):\n  for i in range(3000): print(i, 'x' * 1000)\n  return 'printed'\n");
  spec.timeout_sec = 60;  // the machine may be busy
  const Replica replica = Ready(spec);
  behind_ = true;
  std::atomic<bool> answered = false;
  std::string answer;
  std::thread caller([&] {
    answer = Event(replica, "1");
    answered = true;
  });
  std::this_thread::sleep_for(seconds(1));
  EXPECT_FALSE(answered);
  EXPECT_EQ(Lines().find("|0 x"), std::string::npos);
  behind_ = false;
  caller.join();
  EXPECT_THAT(answer, HasSubstr("printed"));
  Until([&](const auto&) { return base::Contains(Lines(), "2999 x"); });
  EXPECT_THAT(Lines(), AllOf(HasSubstr("|0 x"), HasSubstr("|1500 x"), HasSubstr("|2999 x")));
}

TEST_F(ProcessRuntimeTest, AServerOutOfDescriptorsIsNoFaultOfTheFunction) {
  const ReplicaSpec spec = Python("def handle(event): return event\n");
  Ready(spec);  // the interpreter is known
  EXPECT_THAT(runtime_->Ensure(key_, spec, 0), IsOk());
  Until([](const auto& r) { return r.empty(); });
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  {
    std::vector<base::Fd> taken;
    for (int i = 0; i < 100; ++i) taken.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    const rlimit low{static_cast<rlim_t>(taken.back().get()) + 1, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &low);
    const Replica replica = Failed(spec);
    setrlimit(RLIMIT_NOFILE, &before);
    ASSERT_TRUE(replica.failure);
    EXPECT_EQ(replica.failure->reason, "NoResources");
    EXPECT_THAT(replica.failure->message, HasSubstr("Too many open files"));
  }
  EXPECT_EQ(UntilReady(1).size(), 1u);
}

TEST_F(ProcessRuntimeTest, KillReplacesAtOnce) {
  const ReplicaSpec spec = Python("def handle(event): return event\n");
  const Replica replica = Ready(spec);
  runtime_->Kill(key_, replica.id);
  const auto again = Until([](const auto& r) {
    return r.size() == 1 && r[0].restarts == 1 && r[0].state == ReplicaState::kReady;
  });
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].restarts, 1);
}

TEST_F(ProcessRuntimeTest, ShutdownEndsEverythingByItsDeadline) {
  const ReplicaSpec spec =
      Python("import time\ndef handle(event):\n  print('began')\n  time.sleep(60)\n");
  ReplicaSpec slow = spec;
  slow.timeout_sec = 100;
  const Replica replica = Ready(slow);
  std::thread caller([&] { Event(replica, "1"); });
  Until([&](const auto&) { return base::Contains(Lines(), "began"); });
  const auto begin = std::chrono::steady_clock::now();
  runtime_->Shutdown(base::Deadline::After(clock_, milliseconds(500)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(3));
  EXPECT_THAT(Processes("default/" + key_.name), ElementsAre());
  EXPECT_THAT(runtime_->Ensure(key_, spec, 1),
              IsError(Code::kUnavailable, HasSubstr("shutting down")));
  caller.join();
}

TEST_F(ProcessRuntimeTest, AMissingRuntimeNamesThePathsTried) {
  ProcessOptions options = Options();
  options.state_dir = state_.path() + "/other";
  options.interpreters["python3.11"] = {"/nowhere/python3.11", "/bin/sh"};
  auto made = MakeProcessRuntime(options, clock_, log_, {});
  ASSERT_THAT(made, IsOk());
  const auto status = (*made)->Ensure(key_, Python(""), 1);
  EXPECT_THAT(status,
              IsError(Code::kInvalidArgument,
                      AllOf(HasSubstr("/nowhere/python3.11 (not there)"), HasSubstr("/bin/sh"))));
  EXPECT_EQ(status.error().field, "/spec/runtime");
}

TEST_F(ProcessRuntimeTest, WithoutASandboxItSaysWhatIsMissing) {
  ProcessOptions options = Options();
  options.bwrap = "/nowhere/bwrap";
  EXPECT_THAT(MakeProcessRuntime(options, clock_, log_, {}),
              IsError(Code::kFailedPrecondition,
                      AllOf(HasSubstr("bubblewrap"), HasSubstr("--insecure-no-sandbox"))));
  options.bwrap = "/bin/false";
  EXPECT_THAT(MakeProcessRuntime(options, clock_, log_, {}),
              IsError(Code::kFailedPrecondition, HasSubstr("user namespaces")));
}

TEST_F(ProcessRuntimeTest, ADeepStateFolderStillHasShortSockets) {
  ProcessOptions options = Options();
  options.state_dir = state_.path() + "/" + std::string(90, 'd') + "/runtime";
  auto made = MakeProcessRuntime(options, clock_, log_, {});
  ASSERT_THAT(made, IsOk());
  runtime_.reset();
  runtime_ = std::move(*made);
  EXPECT_THAT(Event(Ready(Python("def handle(event): return event\n")), "41"), HasSubstr("41"));
}

TEST_F(ProcessRuntimeTest, StartTimes) {
  for (const bool node : {false, true}) {
    const ReplicaSpec spec = node ? Node("export const handle = (e) => e;\n")
                                  : Python("def handle(event): return event\n");
    for (int i = 0; i < 3; ++i) {
      const auto begin = std::chrono::steady_clock::now();
      key_.revision = 100 + i + (node ? 10 : 0);
      Ready(spec);
      const auto took =
          std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - begin)
              .count();
      printf("%s start to ready: %ld ms\n", spec.runtime.c_str(), static_cast<long>(took));
      EXPECT_LT(took, 10'000);
    }
  }
}

// Runs as a process of its own, which NothingOutlivesAKilledServer kills.
TEST(Helper, DISABLED_HoldsAReplica) {
  const char* dir = getenv("SLESS_HELPER_DIR");
  if (dir == nullptr) GTEST_SKIP();
  base::SystemClock clock;
  base::NullLogger log;
  ProcessOptions options;
  options.state_dir = std::string(dir) + "/runtime";
  options.runner = SLESS_RUNNER;
  options.runtimes_dir = SLESS_RUNTIMES;
  options.sandbox = getenv("SLESS_HELPER_SANDBOX") != nullptr;
  auto runtime = MakeProcessRuntime(options, clock, log, {});
  ASSERT_THAT(runtime, IsOk());
  ReplicaSpec spec;
  spec.runtime = "python3.11";
  spec.entrypoint = "handler.handle";
  spec.code_dir = std::string(dir) + "/code";
  const RevisionKey key{"default", "orphan", 1};
  ASSERT_THAT((*runtime)->Ensure(key, spec, 1), IsOk());
  for (int i = 0; i < 600; ++i) {
    const auto replicas = (*runtime)->Observe(key);
    if (replicas.size() == 1 && replicas[0].state == ReplicaState::kReady)
      std::ofstream(std::string(dir) + "/ready");
    std::this_thread::sleep_for(milliseconds(50));
  }
}

class KilledServer : public testing::TestWithParam<bool> {};
TEST_P(KilledServer, NothingOutlivesIt) {
  TempDir dir;
  // Without a sandbox a process that leaves the worker's side may live on; with one, nothing does.
  const std::string child_process =
      GetParam() ? "import subprocess\nsubprocess.Popen(['setsid', 'sleep', '7654321'])\n" : "";
  dir.Write("code/handler.py", child_process + "def handle(event): return event\n");
  base::SpawnOptions spawn;
  spawn.command = {fs::read_symlink("/proc/self/exe"), "--gtest_filter=Helper.*",
                   "--gtest_also_run_disabled_tests"};
  spawn.environment = {"PATH=" + std::string(getenv("PATH")), "SLESS_HELPER_DIR=" + dir.path()};
  if (GetParam()) spawn.environment.push_back("SLESS_HELPER_SANDBOX=1");
  auto child = base::Spawn(spawn);
  ASSERT_THAT(child, IsOk());
  for (int i = 0; i < 600 && !fs::exists(dir.path() + "/ready"); ++i)
    std::this_thread::sleep_for(milliseconds(50));
  EXPECT_FALSE(Processes("default/orphan").empty());
  kill(child->pid, SIGKILL);
  base::WaitFor(*child);
  std::vector<std::string> left;
  const auto look = [&] {
    left = Processes("default/orphan");
    for (auto& line : Processes("7654321")) left.push_back(line);
    return left.empty();
  };
  for (int i = 0; i < 60 && !look(); ++i) std::this_thread::sleep_for(milliseconds(50));
  EXPECT_THAT(left, ElementsAre());
  // The next server takes the folder over and clears what is left in its cgroups.
  base::SystemClock clock;
  base::NullLogger log;
  ProcessOptions options;
  options.state_dir = dir.path() + "/runtime";
  options.runner = SLESS_RUNNER;
  options.runtimes_dir = SLESS_RUNTIMES;
  EXPECT_THAT(MakeProcessRuntime(options, clock, log, {}), IsOk());
  EXPECT_TRUE(fs::is_empty(dir.path() + "/runtime/sockets"));
}
INSTANTIATE_TEST_SUITE_P(Modes, KilledServer, testing::Values(true, false),
                         [](const auto& info) { return info.param ? "Sandbox" : "NoSandbox"; });

class WithoutSandbox : public ProcessRuntimeTest {
 protected:
  WithoutSandbox() { sandbox_ = false; }
};

// A runner that ends while its log is not taken leaves half a line.
TEST_F(WithoutSandbox, LinesThatAnEndingRunnerCouldNotWriteAreToldOf) {
  runner_ = state_.path() + "/runner";
  std::ofstream(runner_) << R"(#!/bin/sh
echo '{"t":"2026-01-01T00:00:00.000Z","s":"stdout","r":"","m":"whole"}'
printf '{"t":"2026-01-01T00:00:00.000Z","s":"stdo'
exit 1
)";
  fs::permissions(runner_, fs::perms::owner_all);
  Open();
  ASSERT_THAT(runtime_->Ensure(key_, Python(""), 1), IsOk());
  const auto replicas = Until([&](const auto&) { return base::Contains(Lines(), "missing"); });
  EXPECT_THAT(Lines(), AllOf(HasSubstr("stdout||whole"), HasSubstr("system||log lines are missing"),
                             Not(HasSubstr("stdo\n"))));
  ASSERT_EQ(replicas.size(), 1u);
  ASSERT_TRUE(replicas[0].failure);
  EXPECT_THAT(replicas[0].failure->message, Not(HasSubstr("missing")));
}

TEST_F(WithoutSandbox, RunsNodeWithItsDependencies) {
  ReplicaSpec spec =
      Node("import a from 'left';\nexport const handle = async (event) => [a.name, event];\n");
  state_.Write("deps/node_modules/left/package.json", R"({"name":"left","main":"index.js"})");
  state_.Write("deps/node_modules/left/index.js", "module.exports = {name: 'the dependency'};");
  spec.deps_dir = state_.path() + "/deps";
  EXPECT_THAT(Event(Ready(spec), "5"), HasSubstr(R"([\"the dependency\",5])"));
  runtime_->Shutdown(base::Deadline::After(clock_, seconds(5)));
  EXPECT_THAT(Processes("default/" + key_.name), ElementsAre());
}

}  // namespace
}  // namespace sless::runtime
