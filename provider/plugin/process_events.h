#pragma once

// What ends a plugin's process: the host's Shutdown, a signal, the host's death.

#include <chrono>
#include <memory>

#include "client/base/result.h"

namespace sless::plugin {

enum class EndReason { kNone, kShutdownRpc, kSignal, kHostDied };

class ProcessEvents {
 public:
  struct Options {
    bool end_on_interrupt = false;  ///< SIGINT ends too (a developer's Ctrl-C); else it is ignored
    bool watch_host = true;         ///< the death of the parent process ends
  };
  /// Ignores SIGPIPE, takes SIGTERM (and SIGINT) out of normal delivery. To be called in main
  /// before any thread is started, as threads inherit the mask. Error: kInternal.
  static base::Result<std::unique_ptr<ProcessEvents>> Make(Options options);
  ~ProcessEvents();
  ProcessEvents(const ProcessEvents&) = delete;
  ProcessEvents& operator=(const ProcessEvents&) = delete;

  /// Says that the host asked for the end. From any thread.
  void RequestShutdown();
  /// Waits for the first event, at most `limit`; kNone when the time is over. From one thread.
  EndReason Wait(std::chrono::milliseconds limit);

 private:
  ProcessEvents() = default;
  bool HostDied() const;

  int request_fd_ = -1;
  int signal_fd_ = -1;
  int host_fd_ = -1;  // -1 where the kernel has no pidfd: then the parent's id is compared
  bool watch_host_ = false;
  int host_pid_ = 0;
};

}  // namespace sless::plugin
