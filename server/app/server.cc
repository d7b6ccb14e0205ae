#include "server/app/server.h"

#include <condition_variable>
#include <mutex>

#include "client/base/strings.h"
#include "server/handlers/handlers.h"

namespace sless::app {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kUnix = "unix:";
// How often gauges are read and readiness is looked at.
constexpr milliseconds kTick{1000};

/// Sleeps until `stop` or the end of `wait`.
void Pause(std::stop_token stop, milliseconds wait) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, wait, [] { return false; });
}

/// The URL for clients on this machine: where it listens, loopback for a wildcard.
std::string LocalUrl(const std::string& address) {
  if (address.starts_with(kUnix))
    return "http+unix://" + base::PercentEncode(address.substr(kUnix.size()));
  const auto host = address.substr(0, address.rfind(':'));
  const bool wildcard = host == "0.0.0.0" || host == "[::]";
  return "http://" + (wildcard ? "127.0.0.1" : host) + address.substr(address.rfind(':'));
}

/// A port that is taken is told soon. Not at once: what a killed predecessor was just starting may
/// have its socket for a moment yet.
base::Result<std::unique_ptr<http::Listener>> Listen(http::IoPool& io, const std::string& listen,
                                                     const base::Clock& clock) {
  const auto patience = base::Deadline::After(clock, std::chrono::seconds(2));
  while (true) {
    auto listener = http::Listener::Open(io, listen);
    if (listener || listener.error().code != base::Code::kUnavailable || patience.Passed(clock))
      return listener;
    Pause({}, milliseconds(50));
  }
}

}  // namespace

base::Result<std::unique_ptr<Server>> Server::Start(config::Options options,
                                                    Environment environment, base::Logger& log) {
  ASSIGN_OR_RETURN(auto data, DataDir::Lock(options.data_dir));
  std::unique_ptr<Server> server(new Server(std::move(options), std::move(data), log));
  // First: what is wrong with it is told before anything is changed, and the URLs that are handed
  // out need the port.
  server->io_ = std::make_unique<http::IoPool>();
  ASSIGN_OR_RETURN(server->listener_,
                   Listen(*server->io_, server->options_.listen, server->clock_));
  ASSIGN_OR_RETURN(server->drivers_,
                   MakeDrivers(server->options_, environment, server->data_, server->clock_, log));
  server->external_url_ = server->options_.external_url.empty()
                              ? LocalUrl(server->listener_->address())
                              : server->options_.external_url;
  while (server->external_url_.ends_with('/')) server->external_url_.pop_back();
  server->WireRooms();
  RETURN_IF_ERROR(server->Run());
  return server;
}

Server::Server(config::Options options, DataDir data, base::Logger& log)
    : options_(std::move(options)),
      log_(log),
      data_(std::move(data)),
      instance_(base::RandomHex(8)) {}

Server::~Server() { Stop(base::Deadline{base::SteadyPoint::min()}); }

void Server::WireRooms() {
  auto& store = *drivers_.store;
  auth_ = auth::MakeAuthenticator(store, clock_);
  wake_ = std::make_unique<http::WakeHub>();
  gateway::GatewayOptions gateway_options;
  gateway_options.external_scheme = external_url_.starts_with("https://") ? "https" : "http";
  gateway_options.trusted_proxies = options_.trusted_proxies;
  gateway_options.restoring = true;
  gateway_ = gateway::MakeGateway({*io_, *drivers_.runtime, *auth_, metrics_, clock_, log_},
                                  gateway_options);

  builds_ = std::make_unique<reconcile::BuildRunner>(
      reconcile::BuildRunner::Deps{*drivers_.builder, *drivers_.artifacts, *drivers_.logs, clock_,
                                   log_, metrics_},
      static_cast<int>(options_.build_workers));
  controller_ = std::make_unique<reconcile::Controller>(
      reconcile::Controller::Deps{store, clock_, log_},
      reconcile::Controller::Options{static_cast<int>(options_.reconcile_workers)});
  const auto enqueue = [this](const api::ObjectKey& key) { controller_->Put(key); };
  const auto look_at_function = [this](const std::string& ns, const std::string& name) {
    controller_->Put({std::string(api::kKindFunction), ns, name});
  };
  builds_->OnDone(look_at_function);
  gateway_->OnChange(look_at_function);
  functions_ = std::make_unique<reconcile::FunctionReconciler>(
      reconcile::FunctionReconciler::Deps{store, *gateway_, *builds_, *drivers_.logs, clock_, log_,
                                          enqueue, external_url_, data_.Path("layers/")},
      reconcile::FunctionReconciler::Options{});
  scheduler_ = std::make_unique<trigger::CronScheduler>(
      trigger::CronScheduler::Deps{store, clock_, log_, metrics_});
  triggers_ = std::make_unique<reconcile::TriggerReconciler>(reconcile::TriggerReconciler::Deps{
      store, *scheduler_, clock_, log_, enqueue,
      [this](const auto& ns, const auto& name, const auto& route) {
        return functions_->Routed(ns, name, route);
      },
      [this](const auto& run) { runs_->Cancel(run); }, external_url_});
  jobs::RunWorker::Options run_options;
  run_options.workers = static_cast<int>(options_.jobs_workers);
  run_options.instance = instance_;
  runs_ = std::make_unique<jobs::RunWorker>(
      jobs::RunWorker::Deps{store, *gateway_, clock_, log_, metrics_}, run_options);
  jobs_ = std::make_unique<reconcile::JobReconciler>(reconcile::JobReconciler::Deps{
      store, clock_, log_, [this](const auto& run) { runs_->Cancel(run); }});
  gc_ = std::make_unique<reconcile::ArtifactGc>(reconcile::ArtifactGc::Deps{
      store, *drivers_.artifacts, *drivers_.builder, *builds_, *drivers_.runtime, clock_, log_});
  controller_->Add(api::kKindFunction, *functions_);
  controller_->Add(api::kKindTrigger, *triggers_);
  controller_->Add(api::kKindJob, *jobs_);
}

base::Status Server::Run() {
  wake_subscription_ = handlers::WakeOnChange(*drivers_.store, *wake_);
  http::Router router;
  gateway_->RegisterRoutes(router);
  handlers::RegisterRoutes(
      router, {*drivers_.store, *drivers_.artifacts, *drivers_.logs, *auth_, metrics_, clock_, log_,
               *wake_, external_url_, drivers_.runtimes, [this]() -> base::Status {
                 if (ready_) return base::Ok();
                 return base::Err(base::Code::kUnavailable,
                                  "restoring what served before the start");
               }});
  http::ServerOptions http_options;
  http_options.workers = static_cast<int>(options_.http_workers);
  http_options.max_connections = static_cast<size_t>(options_.http_max_connections);
  // Before anybody can ask: calls of a function that is not published yet wait for it.
  RETURN_IF_ERROR(controller_->Start());
  http_ = http::Server::Start(*listener_, http_options, std::move(router), {*io_, log_, metrics_});
  listener_.reset();
  RETURN_IF_ERROR(runs_->Start());
  scheduler_->Start();
  if (const auto announced = data_.Announce(http_->address()); !announced) {
    log_.Warn("server.json is not written; who looks there does not find this server",
              {{"error", announced.error().message}});
  }
  log_.Info("listening", {{"address", http_->address()},
                          {"external_url", external_url_},
                          {"version", SLESS_VERSION},
                          {"data_dir", data_.Path("")},
                          {"sandbox", !options_.insecure_no_sandbox}});
  if (options_.insecure_no_sandbox) {
    log_.Warn(
        "functions run without a sandbox: they can read and write all that slessd can "
        "(--insecure-no-sandbox)");
  }
  threads_.emplace_back([this](std::stop_token stop) { WatchReadiness(stop); });
  threads_.emplace_back([this](std::stop_token stop) { Maintain(stop); });
  return base::Ok();
}

void Server::WatchReadiness(std::stop_token stop) {
  const auto begin = clock_.Steady();
  while (!stop.stop_requested() && !controller_->Settled()) Pause(stop, milliseconds(10));
  if (stop.stop_requested()) return;
  gateway_->Restored();
  ready_ = true;
  log_.Info("ready", {{"took_ms",
                       std::chrono::duration_cast<milliseconds>(clock_.Steady() - begin).count()}});
}

void Server::Maintain(std::stop_token stop) {
  auto& depth = metrics_.Gauges("sless_queue_depth", "keys that wait or are worked on", {"queue"});
  auto& running =
      metrics_.GetGauge("sless_runs_running", "runs of jobs and cron triggers that run now");
  auto next = clock_.Steady() + std::chrono::seconds(options_.gc_interval_sec);
  while (!stop.stop_requested()) {
    depth.With({"reconcile"}).Set(static_cast<int64_t>(controller_->Depth()));
    depth.With({"runs"}).Set(static_cast<int64_t>(runs_->Depth()));
    running.Set(static_cast<int64_t>(runs_->Running()));
    if (clock_.Steady() >= next) {
      for (const auto& [what, status] :
           {std::pair("code", gc_->CollectArtifacts()), std::pair("layers", gc_->CollectLayers()),
            std::pair("runs", jobs_->CollectOrphans())}) {
        if (!status)
          log_.Warn("collection failed", {{"of", what}, {"error", base::ToString(status.error())}});
      }
      next = clock_.Steady() + std::chrono::seconds(options_.gc_interval_sec);
    }
    Pause(stop, kTick);
  }
}

void Server::Stop(base::Deadline deadline) {
  if (stopped_) return;
  stopped_ = true;
  ready_ = false;
  threads_.clear();
  scheduler_ ? scheduler_->Stop() : void();
  // Runs and HTTP calls drain side by side.
  std::jthread runs([&] {
    if (runs_) runs_->Stop(deadline);
  });
  if (http_) http_->Stop(deadline.Left(clock_));
  runs.join();
  if (builds_) builds_->Stop();
  if (controller_) controller_->Stop();
  if (gateway_) gateway_->Stop();
  // Whoever still runs after the deadline is killed, with a moment for those that just began to
  // end.
  if (drivers_.runtime) {
    drivers_.runtime->Shutdown({std::max(deadline.at, clock_.Steady() + milliseconds(500))});
  }
  wake_subscription_.reset();
  if (io_) io_->Stop();
}

}  // namespace sless::app
