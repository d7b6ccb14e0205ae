#pragma once

#include <functional>
#include <map>
#include <string>

#include "client/api/trigger.h"
#include "client/base/clock.h"
#include "client/base/guarded.h"
#include "client/base/log.h"
#include "server/gateway/serving.h"
#include "server/reconcile/end_runs.h"
#include "server/reconcile/reconciler.h"
#include "server/store/object_store.h"
#include "server/trigger/cron_scheduler.h"

namespace sless::reconcile {

/// Brings triggers to what their spec wants: an http trigger is a part of its function's route, a
/// cron trigger an entry of the scheduler. A cron trigger is gone only when no call of it runs any
/// more.
class TriggerReconciler final : public Reconciler {
 public:
  struct Deps {
    store::ObjectStore& store;
    trigger::CronScheduler& scheduler;
    const base::Clock& clock;
    base::Logger& log;
    Enqueue enqueue;
    /// Is this http trigger a part of the function's published route?
    std::function<bool(const std::string& ns, const std::string& function,
                       const gateway::HttpRoute& route)>
        routed;
    CancelRun cancel;
    std::string external_url;  ///< without a final '/'
  };
  explicit TriggerReconciler(Deps deps) : deps_(std::move(deps)) {}

  base::Result<Next> Reconcile(const api::ObjectKey& key) override;

 private:
  base::Result<Next> Gone(const api::ObjectKey& key);
  base::Result<std::vector<api::Run>> RunsOf(const api::Trigger& trigger) const;
  /// False: its calls have not ended.
  base::Result<bool> Delete(const api::Trigger& trigger);
  /// Tells the function of this trigger, and the one that it had before, to look at their triggers.
  void TellFunction(const api::ObjectKey& key, const std::string& function);
  base::Result<Next> Write(const api::Trigger& trigger, api::TriggerStatus status, Next next);

  const Deps deps_;
  base::Guarded<std::map<api::ObjectKey, std::string>> function_of_;
};

}  // namespace sless::reconcile
