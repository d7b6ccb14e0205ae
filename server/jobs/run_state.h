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

/// Annotation of a run that shall end, and why. Taken off with its end.
inline constexpr std::string_view kCancelAnnotation = "sless.dev/cancel";

/// Longest result of a run that is kept.
inline constexpr size_t kMaxResultBytes = 1024 * 1024;

enum class RunStep {
  kNothing,      ///< it has ended
  kStart,        ///< an attempt may begin
  kInterrupted,  ///< its server is gone: MarkInterrupted
  kCancelled,    ///< it was cancelled and its call, if there was one, has ended: MarkCancelled
  kOurs,         ///< running in this server
};
RunStep NextStep(const api::Run& run, const std::string& instance);

/// The lease: Running, one attempt more.
void MarkStarted(api::Run& run, const std::string& instance, const std::string& request_id,
                 base::TimePoint now);
/// Asks for the end of a run, for the reason `why`. One whose call runs is ended by its worker,
/// once the call has ended; every other one at once. An ended one stays as it is.
void AskToEnd(api::Run& run, std::string why, base::TimePoint now);
/// Failed for good, reason Cancelled, as AskToEnd wanted.
void MarkCancelled(api::Run& run, base::TimePoint now);
/// Takes the lease back: the handler did not begin, the attempt does not count.
void MarkNotBegun(api::Run& run);
/// The end of an attempt: Succeeded, or Pending again where attempts are left, or Failed. A failed
/// one that was to end is cancelled.
void MarkFinished(api::Run& run, const base::Result<gateway::EventResult>& outcome,
                  base::TimePoint now);
/// As an attempt that failed because slessd stopped; one that was to end is cancelled.
void MarkInterrupted(api::Run& run, base::TimePoint now);
/// Failed for good, whatever attempts are left: counts as one attempt where `counts`.
void MarkFailed(api::Run& run, api::Failure failure, bool counts, base::TimePoint now);

}  // namespace sless::jobs
