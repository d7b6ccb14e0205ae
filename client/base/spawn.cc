#include "client/base/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client/base/fd.h"
#include "client/base/strings.h"

namespace sless::base {
namespace {

struct Failed {
  int error = 0;
  char step = '?';
};

// What the child needs, prepared before the fork: between fork and exec of a process with threads
// only async-signal-safe calls are allowed, so no allocation.
struct Prepared {
  std::vector<char*> argv, env;
  std::vector<std::pair<int, int>> fds;  // second: number in the child
  std::vector<int> moved;                // room for the first round of duplicates
  int highest = 2;
  int failed = -1;
  int parent = 0;
};

std::vector<char*> Pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (const auto& word : words) out.push_back(const_cast<char*>(word.c_str()));
  out.push_back(nullptr);
  return out;
}

[[noreturn]] void Die(int failed, char step) {
  const Failed report{errno, step};
  [[maybe_unused]] const ssize_t n = write(failed, &report, sizeof report);
  _exit(127);
}

void MoveFds(Prepared& p) {
  // First all out of the way of the numbers that are wanted, then to their places.
  const int report = fcntl(p.failed, F_DUPFD_CLOEXEC, p.highest + 1);
  if (report < 0) Die(p.failed, 'f');
  p.failed = report;
  for (size_t i = 0; i < p.fds.size(); ++i)
    p.moved[i] = fcntl(p.fds[i].first, F_DUPFD_CLOEXEC, p.highest + 1);
  for (size_t i = 0; i < p.fds.size(); ++i) {
    if (p.moved[i] < 0 || dup2(p.moved[i], p.fds[i].second) < 0) Die(p.failed, 'f');
  }
  for (int fd = 3; fd <= p.highest; ++fd) {
    bool wanted = false;
    for (const auto& pair : p.fds) wanted = wanted || pair.second == fd;
    if (!wanted) close(fd);
  }
  close_range(static_cast<unsigned>(p.highest) + 1, static_cast<unsigned>(p.failed) - 1, 0);
  close_range(static_cast<unsigned>(p.failed) + 1, ~0U, 0);
}

// <linux/landlock.h> of Linux 6.12; the headers of the machine that builds are often older.
struct LandlockRules {
  uint64_t files = 0, network = 0;  // nothing of these is restricted
  uint64_t scoped = 0;
};
constexpr uint64_t kAbstractSockets = 1;
constexpr long kWithScopes = 6;  // version of the interface
constexpr unsigned kAskForVersion = 1;

void KeepToOwnAbstractSockets() {
  if (syscall(SYS_landlock_create_ruleset, nullptr, 0, kAskForVersion) < kWithScopes) return;
  const LandlockRules rules{.scoped = kAbstractSockets};
  const long fd = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
  if (fd < 0) return;
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  syscall(SYS_landlock_restrict_self, fd, 0);
  close(static_cast<int>(fd));
}

[[noreturn]] void RunChild(Prepared& p, const SpawnOptions& options) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != p.parent) _exit(127);
  for (const auto& file : options.join) {
    const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1) Die(p.failed, 'g');
    close(fd);
  }
  MoveFds(p);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int sig : {SIGPIPE, SIGTERM, SIGINT, SIGHUP, SIGCHLD}) signal(sig, SIG_DFL);
  for (const auto& [resource, value] : options.limits) {
    const rlimit limit{value, value};
    setrlimit(static_cast<__rlimit_resource_t>(resource), &limit);
  }
  if (options.no_new_privileges) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (options.own_abstract_sockets) KeepToOwnAbstractSockets();
  if (chdir(options.directory.c_str()) != 0) Die(p.failed, 'd');
  execve(p.argv[0], p.argv.data(), p.env.data());
  Die(p.failed, 'x');
}

std::string StepText(char step, const SpawnOptions& options) {
  switch (step) {
    case 'g':
      return "entering its cgroup";
    case 'd':
      return "entering " + options.directory;
    case 'x':
      return "executing it";
    case 'w':
      return "watching it";
    default:
      return "passing its descriptors";
  }
}

}  // namespace

std::string ExitStatus::Text() const {
  if (signal == 0) return fmt::format("ended with exit code {}", code);
  return fmt::format("was killed by signal {} ({})", signal, strsignal(signal));
}

Result<Child> Spawn(const SpawnOptions& options) {
  const auto error = [&](const std::string& step, int number) {
    return SystemError(fmt::format("cannot start {}: {}", options.command.at(0), step),
                       Code::kInternal, number);
  };
  Prepared p;
  p.argv = Pointers(options.command);
  p.env = Pointers(options.environment);
  p.fds = options.fds;
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  int report[2];
  if (null < 0 || pipe2(report, O_CLOEXEC) != 0) {
    const int number = errno;
    if (null >= 0) close(null);
    return error("opening descriptors", number);
  }
  for (int fd = 0; fd < 3; ++fd) {
    if (std::none_of(p.fds.begin(), p.fds.end(),
                     [&](const auto& pair) { return pair.second == fd; }))
      p.fds.emplace_back(null, fd);
  }
  for (const auto& pair : p.fds) p.highest = std::max(p.highest, pair.second);
  p.moved.resize(p.fds.size());
  p.failed = report[1];
  p.parent = getpid();

  Child child;
  child.pid = fork();
  if (child.pid == 0) RunChild(p, options);
  const int fork_error = errno;
  close(null);
  close(report[1]);
  if (child.pid < 0) {
    close(report[0]);
    return error("fork", fork_error);
  }
  child.pidfd = static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0));
  Failed failed{errno, 'w'};  // of the child, where it reports one
  ssize_t n;
  while ((n = read(report[0], &failed, sizeof failed)) < 0 && errno == EINTR) {
  }
  close(report[0]);
  if (n > 0 || child.pidfd < 0) {
    KillGroup(child);
    WaitFor(child);
    return error(StepText(failed.step, options), failed.error);
  }
  return child;
}

void KillGroup(const Child& child) {
  if (child.pid <= 0) return;
  kill(-child.pid, SIGKILL);
  kill(child.pid, SIGKILL);
}

std::optional<ExitStatus> Reap(Child& child) {
  siginfo_t seen{};
  if (child.pid <= 0) return std::nullopt;
  if (waitid(P_PID, static_cast<id_t>(child.pid), &seen, WEXITED | WNOHANG | WNOWAIT) != 0 ||
      seen.si_pid != child.pid) {
    return std::nullopt;
  }
  return WaitFor(child);
}

ExitStatus WaitFor(Child& child) {
  siginfo_t seen{};
  while (waitid(P_PID, static_cast<id_t>(child.pid), &seen, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  kill(-child.pid, SIGKILL);  // what it left in its group; before the wait, which frees the number
  int status = 0;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (child.pidfd >= 0) close(child.pidfd);
  child = {};
  return WIFSIGNALED(status) ? ExitStatus{0, WTERMSIG(status)} : ExitStatus{WEXITSTATUS(status), 0};
}

Result<CommandOutput> RunCommand(const SpawnOptions& options, Deadline deadline,
                                 const Clock& clock) {
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0)
    return SystemError("cannot start " + options.command.at(0) + ": pipe", Code::kInternal);
  SpawnOptions with = options;
  with.fds.emplace_back(out[1], 1);
  with.fds.emplace_back(out[1], 2);
  auto child = Spawn(with);
  close(out[1]);
  if (!child) {
    close(out[0]);
    return tl::unexpected(child.error());
  }
  CommandOutput output;
  bool timed_out = false;
  for (bool open = true; open;) {
    pollfd fd{out[0], POLLIN, 0};
    const auto left = std::min<int64_t>(deadline.Left(clock).count() + 1, 1000);
    poll(&fd, 1, static_cast<int>(left));
    char buffer[4096];
    if (fd.revents != 0) {
      const ssize_t n = read(out[0], buffer, sizeof buffer);
      open = n > 0 || (n < 0 && errno == EINTR);
      if (n > 0 && output.text.size() < 64 * 1024)
        output.text.append(buffer, static_cast<size_t>(n));
    }
    if (open && deadline.Passed(clock)) {
      timed_out = true;
      break;
    }
  }
  close(out[0]);
  // It may have closed its output and run on.
  while (!timed_out) {
    pollfd fd{child->pidfd, POLLIN, 0};
    if (poll(&fd, 1, static_cast<int>(std::min<int64_t>(deadline.Left(clock).count() + 1, 1000))) >
        0)
      break;
    timed_out = deadline.Passed(clock);
  }
  if (timed_out) KillGroup(*child);
  output.exit = WaitFor(*child);
  if (timed_out)
    return Err(Code::kDeadlineExceeded,
               fmt::format("{} did not end in time and was killed", options.command.at(0)));
  return output;
}

std::string FindProgram(const std::string& name, const std::string& path) {
  const auto runnable = [](const std::string& file) {
    struct stat info {};
    return stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
           access(file.c_str(), X_OK) == 0;
  };
  if (base::Contains(name, '/')) return runnable(name) ? name : "";
  for (const auto& folder : Split(path, ':')) {
    if (folder.empty() || folder.front() != '/') continue;  // never a program of the current folder
    if (const std::string file = folder + "/" + name; runnable(file)) return file;
  }
  return "";
}

}  // namespace sless::base
