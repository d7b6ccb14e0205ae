#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/api/function.h"
#include "client/api/trigger.h"
#include "client/base/clock.h"
#include "client/base/guarded.h"
#include "client/base/log.h"
#include "server/gateway/serving.h"
#include "server/invocations/log_store.h"
#include "server/reconcile/build_runner.h"
#include "server/reconcile/function_plan.h"
#include "server/reconcile/reconciler.h"
#include "server/reconcile/revision.h"
#include "server/store/object_store.h"

namespace sless::reconcile {

/// Brings functions to what their spec wants: build, readiness of the new revision, switch. What
/// serves goes on serving until the switch, and after a failure.
class FunctionReconciler final : public Reconciler {
 public:
  struct Options {
    std::chrono::seconds start_limit{
        90};                              ///< from the first Prepare of a revision to its readiness
    std::chrono::milliseconds poll{100};  ///< between two looks at a starting revision
    std::chrono::milliseconds status_interval{
        1000};                  ///< counts of replicas are written at most so often
    size_t keep_revisions = 5;  ///< ended ones besides the serving one
    /// So long after the end of a function no replica of it is left.
    std::chrono::milliseconds drained = std::chrono::hours(2);
  };
  struct Deps {
    store::ObjectStore& store;
    gateway::Serving& serving;
    BuildRunner& builds;
    invocations::LogStore& logs;
    const base::Clock& clock;
    base::Logger& log;
    Enqueue enqueue;
    std::string external_url;  ///< without a final '/'
    std::string layers_dir;    ///< where layers lie, see LayersPresent
  };
  FunctionReconciler(Deps deps, Options options) : deps_(std::move(deps)), options_(options) {}

  base::Result<Next> Reconcile(const api::ObjectKey& key) override;

  /// True if the route of the function that is published has this http trigger with these settings.
  bool Routed(const std::string& ns, const std::string& function,
              const gateway::HttpRoute& route) const;
  /// Functions that are remembered, also those that are gone.
  size_t Remembered() const;

 private:
  // What this process knows of one function. Used by one worker at a time; only the map of them has
  // a lock.
  struct Known {
    std::string uid;
    std::optional<gateway::FunctionRoute> published;
    int64_t least_revision = 1;  // numbers are not used twice, see Departed
    int64_t preparing = 0;       // revision given to Serving::Prepare and not published, 0 for none
    base::SteadyPoint start_by;  // for `preparing`
    int transient_failures = 0;
    std::string transient_note;
    base::SteadyPoint retry_at;  // not before, after a transient failure
    base::SteadyPoint status_written;
    // The serving revision whose layers could not be made again, and why.
    std::optional<std::pair<int64_t, base::Error>> lost;
    std::optional<api::FunctionSpec> unserved;  // status.serving until it was taken away
  };
  // One look at a function.
  struct View {
    api::Function function;
    std::vector<api::Trigger> triggers;
    std::vector<Revision> revisions;
    Known& known;
    const Revision* Find(int64_t number) const;
    std::string ns() const { return function.metadata.ns; }
    std::string name() const { return function.metadata.name; }
  };

  Known& KnownOf(const api::ObjectKey& key);
  base::Result<Next> Gone(const api::ObjectKey& key);
  base::Status RecordSwitch(View& view);
  base::Status Delete(const api::Function& function, Known& known);
  void DropOthers(View& view, int64_t target);
  /// kLost: found just now; kStillLost: not tried again yet.
  enum class Layers { kThere, kBuilding, kLost, kStillLost };
  /// Publishes what serves now with the triggers of now. Else than kThere: the serving revision's
  /// layers are gone.
  Layers PublishServing(View& view, const FunctionDecision& decision);
  /// Makes the layers of the serving revision again. Never kStillLost.
  Layers Restore(View& view, const Revision& serving);
  static bool IsLost(const View& view, const Revision& serving);
  static api::FunctionSpec LastServing(const View& view, const Revision& serving);
  void Publish(View& view, gateway::FunctionRoute route);

  base::Result<Next> Serve(View& view);
  base::Result<Next> Lost(View& view, bool tried, const std::optional<api::Failure>& failure);
  std::optional<std::chrono::milliseconds> Wait(const Known& known) const;
  static void SetServing(View& view, api::FunctionStatus& status);
  base::Result<Next> Create(View& view, int64_t number, const std::string& input);
  base::Result<Next> Build(View& view, const Revision& revision);
  base::Result<Next> Prepare(View& view, const Revision& revision);
  base::Result<Next> Failed(View& view, const api::Failure& failure);
  base::Result<Next> Fail(View& view, const Revision& revision, api::Failure failure);
  base::Result<Next> TryAgain(View& view, const std::string& phase, const base::Error& error,
                              std::chrono::milliseconds wait,
                              const std::optional<api::Failure>& failure = {});
  base::Result<Next> WriteStatus(View& view, const std::string& phase,
                                 const std::function<void(api::FunctionStatus&)>& change,
                                 Next next);
  base::Status Prune(View& view, int64_t serving);
  void Dependents(const std::string& ns, const std::string& function);

  // Of a function that is gone: its numbers stay used while replicas of it may be draining.
  struct Departed {
    int64_t least_revision = 1;
    base::SteadyPoint at;
  };
  struct Memory {
    std::map<api::ObjectKey, std::unique_ptr<Known>> known;
    std::map<api::ObjectKey, Departed> departed;
  };

  const Deps deps_;
  const Options options_;
  base::Guarded<Memory> memory_;
  base::Guarded<std::map<std::pair<std::string, std::string>, std::vector<gateway::HttpRoute>>>
      routed_;
};

}  // namespace sless::reconcile
