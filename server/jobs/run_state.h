#pragma once

// How one run goes from Pending to its end. Pure: no I/O, no clock, no locks.
//
//   Pending ──lease──► Running ──► Succeeded
//      ▲                  │
//      └── attempts left ─┴──────► Failed ──(maxAttempts raised)──► Pending
//
// The lease is written before the function is called, so a crash can never run an attempt twice: at
// the next start it counts as an attempt that failed, reason Interrupted.

#include <string>

#include "client/api/job.h"
#include "client/base/clock.h"
#include "client/base/result.h"
#include "server/gateway/invoker.h"

namespace sless::jobs {

/// Longest result of a run that is kept.
inline constexpr size_t kMaxResultBytes = 1024 * 1024;

enum class RunStep {
  kNothing,      ///< it has ended
  kStart,        ///< an attempt may begin
  kInterrupted,  ///< its server is gone: MarkInterrupted
  kOurs,         ///< running in this server
};
RunStep NextStep(const api::Run& run, const std::string& instance);

/// The lease: Running, one attempt more.
void MarkStarted(api::Run& run, const std::string& instance, const std::string& request_id,
                 base::TimePoint now);
/// Takes the lease back: the handler did not begin, the attempt does not count.
void MarkNotBegun(api::Run& run);
/// The end of an attempt: Succeeded, or Pending again where attempts are left, or Failed.
void MarkFinished(api::Run& run, const base::Result<gateway::EventResult>& outcome,
                  base::TimePoint now);
/// As an attempt that failed because slessd stopped.
void MarkInterrupted(api::Run& run, base::TimePoint now);
/// Failed for good, whatever attempts are left: counts as one attempt where `counts`.
void MarkFailed(api::Run& run, api::Failure failure, bool counts, base::TimePoint now);

}  // namespace sless::jobs
