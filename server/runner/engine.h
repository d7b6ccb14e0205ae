#pragma once

// The calls of one replica: admission, the worker process that runs them, their time, their logs,
// their end.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "client/base/clock.h"
#include "client/base/result.h"
#include "server/runner/worker_process.h"

namespace sless::runner {

struct EngineOptions {
  std::string runtime;
  std::string function;  ///< "namespace/name"
  int64_t revision = 0;
  std::string entrypoint;
  int64_t concurrency = 1;
  int64_t memory_mb = 256;
  std::chrono::milliseconds timeout{60'000};
  std::chrono::milliseconds grace{25'000};     ///< running calls of a drain end within it
  std::chrono::milliseconds cancel_wait{500};  ///< from cancel to kill
  /// Longest wait of a call for a worker that is being replaced.
  std::chrono::milliseconds slot_wait{5'000};
  /// A worker with a call that does not end is killed after it, though other calls run there.
  std::chrono::milliseconds others_wait{25'000};
  /// As slot_wait while these still run: another replica is better.
  std::chrono::milliseconds replace_wait{1'000};
  /// A worker that replaces another one is ready within it, or the replica ends (kExitStartFailed).
  /// The time of the first one is its starter's to watch.
  std::chrono::milliseconds restart_wait{60'000};
  WorkerOptions worker;
  int log_fd = 1;
  int oom_fd =
      -1;  ///< memory.events (cgroup v2) or memory.oom_control (v1) of the replica; -1: none
};

/// What became of a call. `error.reason` is a reason of docs/runner.md.
struct Outcome {
  std::string result_json;  ///< where there is no error
  std::optional<base::Error> error;
  std::vector<std::string> trace;     ///< HandlerError: only frames of the function's own files
  std::vector<std::string> log_tail;  ///< last 30 lines of this call, oldest first
  int64_t duration_ms = 0;
};

struct EngineCall {
  std::string request_id;
  std::string source;
  std::string event_json;             ///< valid JSON
  std::stop_token gone;               ///< the caller has gone: the call is ended
  std::function<void(Outcome)> done;  ///< once, from the engine's thread; must not block
  /// `done` only when the handler runs no more, also where the call's time was up or its caller is
  /// gone. Otherwise those are told at once.
  bool await_end = false;
};

enum class Phase { kStarting, kReady, kStartFailed, kDraining, kEnded };

struct Health {
  Phase phase = Phase::kStarting;
  std::optional<base::Error> failure;  ///< kStartFailed
};

/// Exit codes of the runner, read by runtime/process.
inline constexpr int kExitDrained = 0;
inline constexpr int kExitWorkerDied = 70;
inline constexpr int kExitStartFailed = 71;
inline constexpr int kExitOutOfMemory = 72;
/// Added to kExitWorkerDied and kExitOutOfMemory where calls ran: it is one of them that did it.
inline constexpr int kExitInCall = 16;

/// Owns one thread, which alone touches the worker and the calls.
/// Thread safety: all methods may be called at the same time from any thread.
class Engine {
 public:
  Engine(EngineOptions options, const base::Clock& clock);
  /// Kills the worker and ends what is left.
  ~Engine();

  void Submit(EngineCall call);
  /// No new calls; running ones end within the grace time; then the engine ends with kExitDrained.
  /// Idempotent.
  void Drain();
  Health health() const;
  /// Readable (poll) once the engine has ended; then exit_code() is meant.
  int ended_fd() const;
  int exit_code() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sless::runner
