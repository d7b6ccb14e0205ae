#pragma once

// One replica from its first start to its end, over all its restarts.

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/base/backoff.h"
#include "server/runtime/process/launcher.h"
#include "server/runtime/process/probe.h"

namespace sless::runtime {

/// What a turn of the runtime's thread collects, to be told to others after it.
struct TurnEvents {
  struct LineEvent {
    RevisionKey key;
    std::string replica;
    ReplicaLine line;
  };
  std::vector<LineEvent> lines;
  bool changed = false;  ///< the state of this replica
};

/// Thread safety: the runtime's thread only.
class RunningReplica {
 public:
  struct Deps {
    const ProcessOptions& options;
    Launcher& launcher;
    const base::Clock& clock;
    base::Logger& log;
    std::vector<Cgroup>& dead_cgroups;  ///< to be removed once empty
  };
  RunningReplica(RevisionKey key, ReplicaSpec spec, Interpreter interpreter, Deps deps);
  ~RunningReplica();

  const Replica& view() const { return view_; }
  const RevisionKey& key() const { return key_; }
  const ReplicaSpec& spec() const { return spec_; }
  bool stopping() const { return view_.state == ReplicaState::kStopping; }
  /// Stopped on request and nothing of it is left.
  bool gone() const { return stopping() && child_.pid < 0; }

  void Start(TurnEvents& events);
  /// Drains, and kills at `kill_at`.
  void Stop(base::SteadyPoint kill_at, TurnEvents& events);
  /// See Runtime::Kill.
  void Kill(TurnEvents& events);

  /// Descriptors to poll for input; `with_log`: that of the log too.
  void AddFds(std::vector<int>& fds, bool with_log) const;
  base::SteadyPoint NextTimer() const;
  /// Reads (`with_log`: log lines too) and does all that is due.
  void Turn(TurnEvents& events, bool with_log);

 private:
  void ReadLog(TurnEvents& events, bool to_end);
  void OnLogLine(std::string_view text, TurnEvents& events);
  void DoProbe(TurnEvents& events);
  void OnExit(base::ExitStatus exit, TurnEvents& events);
  void Fail(api::Failure failure, TurnEvents& events);
  api::Failure WhyEnded(base::ExitStatus exit);
  void CloseFds();

  RevisionKey key_;
  ReplicaSpec spec_;
  Interpreter interpreter_;
  Deps deps_;
  Replica view_;

  base::Child child_;
  int control_ = -1, log_ = -1;
  Cgroup cgroup_;
  std::string log_buffer_;
  std::deque<std::string> tail_;
  std::string last_system_;
  std::unique_ptr<Probe> probe_;
  base::SteadyPoint started_, next_probe_, ready_at_;
  std::optional<base::SteadyPoint> kill_at_;
  std::optional<api::Failure> known_failure_;  // found before the process's end
  bool restart_at_once_ = false;
  base::Backoff backoff_;
};

}  // namespace sless::runtime
