#include "server/app/lifecycle.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <future>
#include <optional>

#include "server/app/server.h"

namespace sless::app {
namespace {

// From the end of the grace time to an exit by force.
constexpr auto kLastResort = std::chrono::seconds(15);

sigset_t StopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
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

}  // namespace

void BlockSignals() {
  const auto set = StopSignals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
}

int ServeUntilSignal(config::Options options, Environment environment, base::Logger& log) {
  const auto grace = std::chrono::seconds(options.shutdown_grace_sec);
  auto server = Server::Start(std::move(options), std::move(environment), log);
  if (!server) {
    fmt::print(stderr, "slessd: {}\n", server.error().message);
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
    if (const auto again = NextSignal(std::chrono::milliseconds(20))) {
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
