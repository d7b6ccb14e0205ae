#include "server/app/lifecycle.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <optional>

#include "server/app/server.h"

namespace sless::app {
namespace {

// From the end of the grace time to an exit by force.
constexpr auto kLastResort = std::chrono::seconds(15);

// Descriptors that are none of a client's: the store, the log, pipes of replicas and builds.
constexpr rlim_t kOwnDescriptors = 512;
constexpr int64_t kLeastConnections = 16;

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  // Under nohup it stays ignored; blocked as the others it would come all the same.
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
    sigaddset(&set, SIGHUP);
  return set;
}

/// The next stop signal, nullopt after `wait`.
std::optional<int> NextSignal(std::chrono::milliseconds wait) {
  const auto set = StopSignals();
  const timespec time{wait.count() / 1000, (wait.count() % 1000) * 1'000'000};
  const int signal = sigtimedwait(&set, nullptr, &time);
  return signal > 0 ? std::optional(signal) : std::nullopt;
}

/// In a container without an init this process is the first one, and inherits what others leave:
/// each sandbox leaves its own first process. Their parent then is this thread, which starts
/// nothing itself, so that nobody's child is taken from him.
void BuryOrphans() {
  while (waitpid(-1, nullptr, WNOHANG | __WNOTHREAD) > 0) {
  }
}

/// How many of the wanted connections the limit of open files allows: with a call each has a second
/// one, to the replica. Raises the soft limit as far as is needed.
int64_t ConnectionsWithinLimit(int64_t wanted, base::Logger& log) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  const rlim_t needed = 2 * static_cast<rlim_t>(wanted) + kOwnDescriptors;
  if (limit.rlim_cur < needed) {
    limit.rlim_cur = std::min(limit.rlim_max, needed);
    setrlimit(RLIMIT_NOFILE, &limit);
  }
  getrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur >= needed) return wanted;
  const auto own = std::min(kOwnDescriptors, limit.rlim_cur / 2);
  const auto possible =
      std::max(kLeastConnections, static_cast<int64_t>((limit.rlim_cur - own) / 2));
  if (possible >= wanted) return wanted;
  log.Warn("the limit of open files is too low for http.max_connections; raise LimitNOFILE",
           {{"open_files", static_cast<int64_t>(limit.rlim_cur)},
            {"needed", static_cast<int64_t>(needed)},
            {"max_connections", possible}});
  return possible;
}

}  // namespace

void BlockSignals() {
  const auto set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int ServeUntilSignal(config::Options options, Environment environment, base::Logger& log) {
  const auto grace = std::chrono::seconds(options.shutdown_grace_sec);
  options.http_max_connections = ConnectionsWithinLimit(options.http_max_connections, log);
  auto server = Server::Start(std::move(options), std::move(environment), log);
  if (!server) {
    log.Error("cannot start", {{"error", server.error().message}});
    return 1;
  }
  std::optional<int> signal;
  while (!signal) {
    signal = NextSignal(std::chrono::milliseconds(2'000));
    BuryOrphans();
  }

  log.Info("stopping", {{"signal", *signal}, {"grace_sec", grace.count()}});
  const base::SystemClock clock;
  const auto deadline = base::Deadline::After(clock, grace);
  auto stopped = std::async(std::launch::async, [&] {
    (*server)->Stop(deadline);
    server->reset();
  });
  const auto latest = clock.Steady() + grace + kLastResort;
  while (stopped.wait_for(std::chrono::milliseconds(0)) != std::future_status::ready) {
    const auto again = NextSignal(std::chrono::milliseconds(20));
    // Who closes a terminal sends more than one.
    if (again && *again != SIGHUP) {
      log.Warn("second signal, ending at once", {{"signal", *again}});
      _exit(128 + *again);
    }
    // Something hangs. All that was acknowledged is stored; the next start puts the rest in order.
    if (clock.Steady() > latest) {
      log.Error("could not stop in time, ending at once", {{"grace_sec", grace.count()}});
      _exit(1);
    }
  }
  log.Info("stopped");
  return 0;
}

}  // namespace sless::app
