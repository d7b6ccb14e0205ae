#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "client/base/clock.h"
#include "client/base/log.h"
#include "server/app/data_dir.h"
#include "server/app/drivers.h"
#include "server/auth/authenticator.h"
#include "server/config/options.h"
#include "server/gateway/gateway.h"
#include "server/http/server.h"
#include "server/jobs/run_worker.h"
#include "server/observe/metrics.h"
#include "server/reconcile/artifact_gc.h"
#include "server/reconcile/controller.h"
#include "server/reconcile/function_reconciler.h"
#include "server/reconcile/job_reconciler.h"
#include "server/reconcile/trigger_reconciler.h"
#include "server/trigger/cron_scheduler.h"

namespace sless::app {

/// Everything of slessd, wired. The members stand in the order of construction; what comes later
/// may use what comes before.
class Server {
 public:
  /// Opens the data folder, listens, brings back what served before. Returned: it answers; /readyz
  /// says when all of that is back. Errors: everything that keeps a server from starting, with what
  /// to do about it.
  static base::Result<std::unique_ptr<Server>> Start(config::Options options,
                                                     Environment environment, base::Logger& log);
  ~Server();

  const std::string& address() const { return http_->address(); }
  const std::string& external_url() const { return external_url_; }
  /// Takes nothing new, lets running calls and runs end until `deadline`, ends the rest, stops
  /// everything. Idempotent.
  void Stop(base::Deadline deadline);

 private:
  Server(config::Options options, DataDir data, base::Logger& log);
  void WireRooms();
  base::Status Run();
  void Maintain(std::stop_token stop);
  void WatchReadiness(std::stop_token stop);

  const config::Options options_;
  base::Logger& log_;
  const base::SystemClock clock_;
  DataDir data_;
  std::string external_url_;
  std::string instance_;
  observe::Registry metrics_;
  Drivers drivers_;
  std::unique_ptr<auth::Authenticator> auth_;
  std::unique_ptr<http::IoPool> io_;
  std::unique_ptr<http::Listener> listener_;  ///< until http_ has it
  std::unique_ptr<http::WakeHub> wake_;
  std::unique_ptr<store::Subscription> wake_subscription_;
  std::unique_ptr<gateway::Gateway> gateway_;
  std::unique_ptr<reconcile::BuildRunner> builds_;
  std::unique_ptr<reconcile::Controller> controller_;
  std::unique_ptr<reconcile::FunctionReconciler> functions_;
  std::unique_ptr<trigger::CronScheduler> scheduler_;
  std::unique_ptr<reconcile::TriggerReconciler> triggers_;
  std::unique_ptr<jobs::RunWorker> runs_;
  std::unique_ptr<reconcile::JobReconciler> jobs_;
  std::unique_ptr<reconcile::ArtifactGc> gc_;
  std::unique_ptr<http::Server> http_;
  std::atomic<bool> ready_{false};
  bool stopped_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace sless::app
