#pragma once

#include <optional>

#include "client/api/object.h"
#include "client/api/rules.h"

namespace sless::api {

struct JobSpec {
  std::string function;            ///< name of the function, same namespace
  std::string event_json = "{}";   ///< JSON text, given to the handler as it is
  int64_t run_id = 0;              ///< 0: nothing runs; a raised number runs once
  int64_t wait_timeout_sec = 300;  ///< how long the client waits; no effect on the run
  int64_t max_retries = 0;         ///< further attempts after a failed one

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("function", self.function,
          Doc{.text = "name of the function in the same namespace",
              .pattern = kDnsLabelPattern,
              .required = true});
    visit("eventJson", self.event_json,
          Doc{.text = "JSON text, the event that the handler gets", .max = kMaxEventBytes});
    visit("runId", self.run_id, Doc{"0 runs nothing; a raised number runs once", "", 0, INT64_MAX});
    visit("waitTimeoutSec", self.wait_timeout_sec,
          Doc{"how long the client waits; no effect on the run", "", 1, 86400});
    visit("maxRetries", self.max_retries, Doc{"further attempts after a failed one", "", 0, 10});
  }
  bool operator==(const JobSpec&) const = default;
};

struct JobStatus {
  std::string phase = "Pending";  ///< Pending | Running | Succeeded | Failed | Skipped
  int64_t observed_generation = 0;
  int64_t run_id = 0;       ///< the run that the rest speaks of; 0 where Skipped
  int64_t last_run_id = 0;  ///< highest run_id that ever ran
  std::string result_json;  ///< what the handler returned, JSON text; "" if none
  std::optional<Failure> failure;
  std::string log_tail;    ///< last 30 lines of the run's log
  int64_t attempts = 0;    ///< under this run_id
  std::string started_at;  ///< RFC 3339, of the last attempt
  std::string finished_at;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("phase", self.phase, Doc{"where it stands", "Pending|Running|Succeeded|Failed|Skipped"});
    visit("observedGeneration", self.observed_generation,
          Doc{"the generation that phase speaks of"});
    visit("runId", self.run_id, Doc{"the run that the rest speaks of"});
    visit("lastRunId", self.last_run_id, Doc{"the highest runId that ever ran"});
    visit("resultJson", self.result_json, Doc{"what the handler returned, JSON text"});
    visit("failure", self.failure, Doc{"why, where phase is Failed"});
    visit("logTail", self.log_tail, Doc{"last lines of the run's log"});
    visit("attempts", self.attempts, Doc{"attempts under this runId"});
    visit("startedAt", self.started_at, Doc{"RFC 3339, of the last attempt"});
    visit("finishedAt", self.finished_at, Doc{"RFC 3339"});
  }
  bool operator==(const JobStatus&) const = default;
};

inline constexpr std::string_view kKindJob = "Job";
using Job = Object<JobSpec, JobStatus>;

/// One run of a job or one fire of a cron trigger. Its name is its idempotency key: "<job>.<runId>"
/// or
/// "<trigger>.<planned unix seconds>.cron", so that no run and no fire can exist twice.
struct RunSpec {
  std::string owner_kind;  ///< Job | Trigger
  std::string owner;       ///< name of the job or trigger
  std::string function;
  std::string event_json;
  int64_t run_id = 0;        ///< jobs: the runId; cron: planned time in unix seconds
  int64_t max_attempts = 1;  ///< attempts allowed now; raised by a retry
  bool serial = false;       ///< begins only when earlier runs of its owner have ended

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("ownerKind", self.owner_kind, Doc{"what asked for the run", "Job|Trigger"});
    visit("owner", self.owner, Doc{"name of the job or trigger"});
    visit("function", self.function, Doc{"name of the function"});
    visit("eventJson", self.event_json, Doc{"JSON text, the event"});
    visit("runId", self.run_id, Doc{"jobs: the runId; cron: planned time in unix seconds"});
    visit("maxAttempts", self.max_attempts, Doc{"attempts allowed so far"});
    visit("serial", self.serial, Doc{"begins only when earlier runs of its owner have ended"});
  }
  bool operator==(const RunSpec&) const = default;
};

struct RunStatus {
  std::string phase = "Pending";  ///< Pending | Running | Succeeded | Failed
  int64_t attempt = 0;            ///< attempts begun
  /// id of the slessd process that runs it; another id means it was interrupted
  std::string server;
  std::string request_id;  ///< of the last attempt; log lines carry it
  std::string result_json;
  std::optional<Failure> failure;
  std::string log_tail;
  std::string started_at;
  std::string finished_at;

  template <class Self, class Visitor>
  static void Fields(Self& self, Visitor& visit) {
    visit("phase", self.phase, Doc{"where it stands", "Pending|Running|Succeeded|Failed"});
    visit("attempt", self.attempt, Doc{"attempts begun"});
    visit("server", self.server, Doc{"the server process that runs it"});
    visit("requestId", self.request_id, Doc{"of the last attempt; its log lines carry it"});
    visit("resultJson", self.result_json, Doc{"what the handler returned, JSON text"});
    visit("failure", self.failure, Doc{"why, where phase is Failed"});
    visit("logTail", self.log_tail, Doc{"last lines of the run's log"});
    visit("startedAt", self.started_at, Doc{"RFC 3339, of the last attempt"});
    visit("finishedAt", self.finished_at, Doc{"RFC 3339"});
  }
  bool operator==(const RunStatus&) const = default;
};

inline constexpr std::string_view kKindRun = "Run";
using Run = Object<RunSpec, RunStatus>;

}  // namespace sless::api
