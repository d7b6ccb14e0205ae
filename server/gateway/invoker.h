#pragma once

#include <stop_token>
#include <string>
#include <vector>

#include "client/api/object.h"
#include "client/base/clock.h"
#include "client/base/result.h"

namespace sless::gateway {

struct EventCall {
  std::string ns;
  std::string function;
  std::string event_json;  ///< given to the handler as it is
  std::string request_id;  ///< log lines of the call carry it
  std::string source;      ///< "job", "cron", "invoke": for metrics and the handler's context
  std::stop_token cancel;  ///< the call is ended; its caller waits until it has ended
};

struct EventResult {
  std::string result_json;            ///< what the handler returned
  std::vector<std::string> log_tail;  ///< last 30 log lines of this call, oldest first
  int64_t revision = 0;
  int64_t duration_ms = 0;
};

/// Calls a function with an event: jobs, cron and authenticated invokes. Same limits, logs and
/// metrics as a request by HTTP. Thread safety: all methods may be called at the same time from any
/// thread.
class Invoker {
 public:
  virtual ~Invoker() = default;

  /// Blocks until the call has ended: until then the handler may be at work, also after its time is
  /// up or `call.cancel` was requested. Only `stop` is not waited for: the call is ended then, a
  /// moment after the return. Wakes the function where no replica runs. The function's own
  /// timeout_sec applies. Errors: kNotFound no such function; kUnavailable nothing serves it
  /// now (being built, failed, switched off): message says which. The handler did NOT begin: it is
  /// safe to try again; kFailedPrecondition reason "HandlerError": the handler raised; message is
  /// "Type: text", source has file, line and the traceback followed by the last log lines;
  /// kDeadlineExceeded reason "Timeout": the call was ended after timeout_sec; kInternal reason
  /// "ReplicaDied": the process ended in the middle (out of memory, exit); kCancelled `stop` or
  /// `call.cancel` was requested.
  virtual base::Result<EventResult> Invoke(const EventCall& call, std::stop_token stop) = 0;
};

}  // namespace sless::gateway
