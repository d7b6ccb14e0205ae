#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/api/trigger.h"
#include "server/runtime/runtime.h"

namespace sless::gateway {

/// How many replicas a function gets.
struct Scaling {
  int min_replicas = 0;
  int max_replicas = 5;  ///< fixed count: min = max
  std::chrono::seconds idle_timeout{
      300};  ///< a replica above min stops after so long without a call
  bool operator==(const Scaling&) const = default;
};

/// One enabled or disabled http trigger.
struct HttpRoute {
  std::string trigger;  ///< its name, for messages
  bool enabled = true;
  api::HttpSpec spec;
  bool operator==(const HttpRoute&) const = default;
};

/// Everything that a request to one function needs; immutable once published.
struct FunctionRoute {
  std::string ns;
  std::string name;
  std::optional<runtime::RevisionKey>
      revision;               ///< empty: nothing serves yet (being built) or it failed
  runtime::ReplicaSpec spec;  ///< of that revision
  Scaling scaling;
  bool switched_off = false;  ///< replicas = 0: every call, also an invoke, is 503
  /// Shown with 503 where revision is empty: a sentence that anybody may read, then, if more is to
  /// say, ": " and what only callers with a token read.
  std::string not_ready_reason;
  std::vector<HttpRoute> http;  ///< empty: the function is private, /fn/ answers 404 and says so
  bool operator==(const FunctionRoute&) const = default;
};

enum class Readiness { kStarting, kReady, kFailed };
struct Prepared {
  Readiness readiness = Readiness::kStarting;
  std::optional<api::Failure> failure;  ///< where kFailed
};

struct Load {
  int ready = 0;  ///< replicas of the serving revision that take calls
  int starting = 0;
  int in_flight = 0;
  int waiting = 0;
  int restarts = 0;
  std::string note;  ///< "" or why no replica is ready although wanted: crash loop and when the
                     ///< next start is
};

/// The gateway as the reconciler sees it: what serves, and how the next revision takes over without
/// a failed request.
///
/// The gateway alone decides how many replicas of a published revision run (from load, within
/// Scaling), so that a cold start needs no store access. Thread safety: all methods may be called
/// at the same time from any thread. None blocks for long.
class Serving {
 public:
  virtual ~Serving() = default;

  /// Starts max(1, scaling.min) replicas of a revision beside what serves now; ready when one of
  /// them answered a health probe by the way that requests take (no user code is called for it).
  /// Call again until it is ready or failed. kFailed: it died or could not load the handler; it
  /// stays so until Abandon, after which Prepare starts it anew.
  virtual base::Result<Prepared> Prepare(const runtime::RevisionKey& revision,
                                         const runtime::ReplicaSpec& spec,
                                         const Scaling& scaling) = 0;

  /// Stops a revision that was prepared and shall not serve. Unknown: nothing happens. Never stops
  /// the published one.
  virtual void Abandon(const runtime::RevisionKey& revision) = 0;

  /// Makes `route` what serves, in one step for all its parts. Calls that run on the revision
  /// before end there, then it is stopped.
  virtual void Publish(FunctionRoute route) = 0;

  /// Forgets a function; its replicas drain and stop.
  virtual void Remove(const std::string& ns, const std::string& name) = 0;

  /// Load of the published revision; zeros for a function that is not known.
  virtual Load Observe(const std::string& ns, const std::string& name) const = 0;

  /// Calls `callback(ns, name)` when readiness or load of a function changed in a way that its
  /// status shows. Must not block. Set once, before the first Publish.
  virtual void OnChange(
      std::function<void(const std::string& ns, const std::string& name)> callback) = 0;
};

}  // namespace sless::gateway
