// sless-runner: stands beside one replica of a function (docs/runner.md).

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

#include "client/base/clock.h"
#include "client/base/log.h"
#include "client/base/strings.h"
#include "server/http/server.h"
#include "server/observe/metrics.h"
#include "server/runner/engine.h"
#include "server/runner/manifest.h"
#include "server/runner/runner.h"

extern char** environ;

namespace sless::runner {
namespace {

struct Flags {
  std::string listen = "127.0.0.1:8080";
  WorkerFacts facts;
  double timeout_sec = 60;
  double grace_sec = 25;
  std::string function = "default/function";
  int64_t revision = 1;
  int env_fd = -1;
  int oom_fd = -1;
  int64_t data_limit_mb = 0;
  int64_t process_limit = 0;
  bool drain_on_eof = false;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--listen", flags.listen,
                 "HOST:PORT, unix:/path, or fd:N for a listening socket that is passed in")
      ->capture_default_str();
  app.add_option("--runtime", flags.facts.runtime, "python3.11 or nodejs20")->required();
  app.add_option("--worker", flags.facts.worker, "file of the language worker")->required();
  app.add_option("--interpreter", flags.facts.interpreter, "path of the interpreter")->required();
  app.add_option("--code", flags.facts.code, "folder of the function's code")->required();
  app.add_option("--deps", flags.facts.deps, "folder of its dependencies");
  app.add_option("--entrypoint", flags.facts.entrypoint, "file.function")->required();
  app.add_option("--concurrency", flags.facts.concurrency, "calls at once")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--timeout-sec", flags.timeout_sec, "longest time of one call")
      ->check(CLI::Range(0.001, 86400.0))
      ->capture_default_str();
  app.add_option("--memory-mb", flags.facts.memory_mb,
                 "memory of the function, for its context and its heap")
      ->capture_default_str();
  app.add_option("--function", flags.function, "namespace/name")->capture_default_str();
  app.add_option("--revision", flags.revision, "number of the revision")->capture_default_str();
  app.add_option("--grace-sec", flags.grace_sec,
                 "running calls end within it when the runner stops")
      ->check(CLI::Range(0.0, 3600.0))
      ->capture_default_str();
  app.add_option("--env-fd", flags.env_fd,
                 "descriptor with the function's environment, NAME=value, each ended by NUL; "
                 "without it: the runner's own");
  app.add_option("--oom-fd", flags.oom_fd,
                 "descriptor of memory.events or memory.oom_control of the replica's cgroup");
  app.add_option("--data-limit-mb", flags.data_limit_mb,
                 "RLIMIT_DATA of the worker, where no cgroup limits its memory");
  app.add_option("--process-limit", flags.process_limit,
                 "RLIMIT_NPROC of the worker: processes and threads");
  app.add_flag("--drain-on-eof", flags.drain_on_eof,
               "stop as for SIGTERM once standard input is closed");
  app.set_version_flag("--version", "sless-runner " SLESS_VERSION);
}

std::map<std::string, std::string> ReadEnvironment(int fd) {
  std::map<std::string, std::string> out;
  const auto add = [&](std::string_view word) {
    const size_t equals = word.find('=');
    if (equals != std::string_view::npos && equals > 0)
      out[std::string(word.substr(0, equals))] = word.substr(equals + 1);
  };
  if (fd < 0) {
    for (char** word = environ; *word != nullptr; ++word) add(*word);
    return out;
  }
  std::string text;
  char buffer[16 * 1024];
  ssize_t n;
  while ((n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
    if (n > 0) text.append(buffer, static_cast<size_t>(n));
  }
  for (const auto& word : base::Split(text, '\0')) add(word);
  return out;
}

/// The worker's environment: the function's own over plain defaults, under facts that it cannot
/// change.
std::vector<std::string> WorkerEnvironment(const Flags& flags) {
  std::map<std::string, std::string> env{{"PATH", "/usr/local/bin:/usr/bin:/bin"},
                                         {"HOME", "/tmp"},
                                         {"LANG", "C.UTF-8"},
                                         {"TZ", "UTC"}};
  for (auto& [name, value] : ReadEnvironment(flags.env_fd)) env[name] = value;
  const size_t slash = flags.function.find('/');
  env["SLESS_NAMESPACE"] = flags.function.substr(0, slash);
  env["SLESS_FUNCTION"] =
      slash == std::string::npos ? flags.function : flags.function.substr(slash + 1);
  env["SLESS_REVISION"] = fmt::format("{}", flags.revision);
  env["SLESS_RUNTIME"] = flags.facts.runtime;
  env["SLESS_MEMORY_MB"] = fmt::format("{}", flags.facts.memory_mb);
  env["SLESS_TIMEOUT_SEC"] = fmt::format("{:g}", flags.timeout_sec);
  std::vector<std::string> out;
  for (const auto& [name, value] : env) out.push_back(name + "=" + value);
  return out;
}

std::chrono::milliseconds Millis(double seconds) {
  return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000));
}

int SignalFd() {
  sigset_t set;
  sigemptyset(&set);
  for (const int sig : {SIGTERM, SIGINT}) sigaddset(&set, sig);
  sigprocmask(SIG_BLOCK, &set, nullptr);  // before any thread: all inherit it
  signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// Until the engine has ended: turns signals and the end of standard input into a drain. Returns
/// when the first of them came; nullopt: the engine ended by itself.
std::optional<base::SteadyPoint> Supervise(Engine& engine, int signals, bool drain_on_eof,
                                           const base::Clock& clock) {
  std::optional<base::SteadyPoint> since;
  const auto drain = [&] {
    if (!since) since = clock.Steady();
    engine.Drain();
  };
  for (bool watch_input = drain_on_eof;;) {
    pollfd fds[3] = {
        {engine.ended_fd(), POLLIN, 0}, {signals, POLLIN, 0}, {watch_input ? 0 : -1, POLLIN, 0}};
    if (poll(fds, 3, -1) < 0) continue;
    if (fds[0].revents != 0) return since;
    if (fds[1].revents != 0) {
      signalfd_siginfo info;
      while (read(signals, &info, sizeof info) > 0) {
      }
      drain();
    }
    if (fds[2].revents != 0) {
      char ignored[64];
      if (read(0, ignored, sizeof ignored) <= 0) {
        watch_input = false;
        drain();
      }
    }
  }
}

int Fail(const base::Error& error) {
  fmt::print(stderr, "sless-runner: {}\n", error.message);
  return kExitStartFailed;
}

int Run(const Flags& flags) {
  const int signals = SignalFd();
  // The worker runs as the same user: it must neither trace us nor open our descriptors.
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  const base::SystemClock clock;
  WorkerFacts facts = flags.facts;
  for (std::string* path : {&facts.worker, &facts.code, &facts.deps}) {
    if (!path->empty())
      *path = std::filesystem::absolute(*path)
                  .lexically_normal();  // the worker starts in the code's folder
  }
  auto command = WorkerCommand(facts);
  if (!command) return Fail(command.error());

  EngineOptions options;
  options.runtime = flags.facts.runtime;
  options.function = flags.function;
  options.revision = flags.revision;
  options.entrypoint = flags.facts.entrypoint;
  options.concurrency = flags.facts.concurrency;
  options.memory_mb = flags.facts.memory_mb;
  options.timeout = Millis(flags.timeout_sec);
  options.grace = Millis(flags.grace_sec);
  // The gateway counts timeout_sec from when it sent a call: our refusal must come before.
  options.slot_wait = std::min(options.slot_wait, options.timeout);
  options.replace_wait = std::min(options.replace_wait, options.timeout);
  options.oom_fd = flags.oom_fd;
  options.worker = {std::move(*command), WorkerEnvironment(flags), facts.code,
                    flags.data_limit_mb * 1024 * 1024, flags.process_limit};
  Engine engine(options, clock);

  base::JsonLogger log(2, base::Level::kError, base::JsonLogger::Keys::kPlain, "runner");
  observe::Registry metrics;
  http::IoPool io(flags.facts.concurrency == 1 ? 1 : 2);
  http::ServerOptions server_options;
  server_options.listen = flags.listen;
  server_options.workers = 1;
  server_options.max_connections = 4096;
  // The gateway keeps its connections for as long as it likes.
  server_options.idle_timeout = std::chrono::hours(1);
  // How slow a client may be is the gateway's to judge.
  server_options.body_timeout = std::chrono::minutes(2);
  auto server = http::Server::Start(server_options, MakeRouter(engine, clock), {io, log, metrics});
  if (!server) return Fail(server.error());
  const auto since = Supervise(engine, signals, flags.drain_on_eof, clock);
  // Answers that are on their way, to slow clients too: they have what the calls left of the grace.
  std::chrono::milliseconds wait = std::chrono::seconds(2);
  if (since) {
    const auto left = options.grace - (clock.Steady() - *since);
    wait = std::max(wait, std::chrono::duration_cast<std::chrono::milliseconds>(left));
  }
  (*server)->Stop(wait);
  io.Stop();
  return engine.exit_code();
}

}  // namespace
}  // namespace sless::runner

int main(int argc, char** argv) {
  CLI::App app{"Runs one replica of a function: HTTP on one side, a language worker on the other."};
  sless::runner::Flags flags;
  sless::runner::AddFlags(app, flags);
  CLI11_PARSE(app, argc, argv);
  return sless::runner::Run(flags);
}
