#pragma once

#include <gmock/gmock.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "client/base/strings.h"
#include "client/base/testing/result_matchers.h"
#include "server/jobs/run_worker.h"
#include "server/jobs/testing/fake_invoker.h"
#include "server/reconcile/build_runner.h"
#include "server/reconcile/controller.h"
#include "server/reconcile/function_reconciler.h"
#include "server/reconcile/job_reconciler.h"
#include "server/reconcile/testing/fakes.h"
#include "server/reconcile/trigger_reconciler.h"
#include "server/store/memory/memory_store.h"
#include "server/store/testing/hooked_store.h"
#include "server/store/typed.h"
#include "server/trigger/cron_scheduler.h"

namespace sless::reconcile {

inline bool Eventually(const std::function<bool()>& holds) {
  for (int i = 0; i < 1000; ++i) {
    if (holds()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

/// Everything of a server but HTTP, the gateway and processes. Start and Stop may alternate: what
/// is in `store` stays, as over a restart.
class World {
 public:
  World() { std::filesystem::create_directories(dir); }
  ~World() {
    Stop();
    std::filesystem::remove_all(dir);
  }

  void Start() {
    serving = std::make_unique<FakeServing>();
    builds = std::make_unique<BuildRunner>(
        BuildRunner::Deps{builder, artifacts, logs, clock, log, metrics}, 2);
    controller =
        std::make_unique<Controller>(Controller::Deps{*store, clock, log},
                                     Controller::Options{4, std::chrono::milliseconds(60'000)});
    const auto enqueue = [this](const api::ObjectKey& key) { controller->Put(key); };
    functions = std::make_unique<FunctionReconciler>(
        FunctionReconciler::Deps{*store, gateway ? *gateway : *serving, *builds, logs, clock, log,
                                 enqueue, "http://sless.test", layers_dir},
        options);
    scheduler = std::make_unique<trigger::CronScheduler>(
        trigger::CronScheduler::Deps{*store, clock, log, metrics});
    triggers = std::make_unique<TriggerReconciler>(TriggerReconciler::Deps{
        *store, *scheduler, clock, log, enqueue,
        [this](const auto& ns, const auto& name, const auto& route) {
          return functions->Routed(ns, name, route);
        },
        [this](const auto& run) { worker->Cancel(run); }, "http://sless.test"});
    worker = std::make_unique<jobs::RunWorker>(
        jobs::RunWorker::Deps{*store, invoker, clock, log, metrics},
        jobs::RunWorker::Options{8, base::RandomHex(8), std::chrono::seconds(60),
                                 std::chrono::milliseconds(1), std::chrono::milliseconds(20),
                                 std::chrono::milliseconds(20), std::chrono::milliseconds(1)});
    jobs = std::make_unique<JobReconciler>(
        JobReconciler::Deps{*store, clock, log, [this](const auto& run) { worker->Cancel(run); }});
    builds->OnDone([this](const auto& ns, const auto& name) {
      controller->Put({"Function", ns, name});
    });
    controller->Add(api::kKindFunction, *functions);
    controller->Add(api::kKindTrigger, *triggers);
    controller->Add(api::kKindJob, *jobs);
    ASSERT_THAT(controller->Start(), base::IsOk());
    ASSERT_THAT(worker->Start(), base::IsOk());
  }
  void Stop() {
    if (!controller) return;
    worker->Stop(base::Deadline::After(clock, std::chrono::milliseconds(0)));
    builds->Stop();
    controller->Stop();
    controller.reset();
  }

  /// Creates or replaces the spec.
  template <class T>
  T Put(const std::string& name, const std::function<void(T&)>& change) {
    T object;
    object.metadata.ns = "default";
    object.metadata.name = name;
    const auto old = store::GetTyped<T>(*store, "default", name);
    if (old) {
      return store::Mutate<T>(*store, "default", name,
                              [&](T& o) {
                                change(o);
                                return base::Ok();
                              })
          .value();
    }
    change(object);
    return store::CreateTyped(*store, object).value();
  }
  api::Function PutFunction(const std::string& name,
                            const std::function<void(api::Function&)>& change = {}) {
    return Put<api::Function>(name, [&](api::Function& f) {
      if (f.spec.runtime.empty()) {
        f.spec.runtime = "python3.11";
        f.spec.source.hash = "sha256:aaaa";
      }
      if (change) change(f);
    });
  }
  template <class T>
  void Delete(const std::string& name) {
    ASSERT_THAT(store::Mutate<T>(*store, "default", name,
                                 [&](T& o) {
                                   o.metadata.deletion_requested_at = base::FormatTime(clock.Now());
                                   return base::Ok();
                                 }),
                base::IsOk());
  }
  template <class T>
  T Get(const std::string& name) {
    return store::GetTyped<T>(*store, "default", name).value_or(T{});
  }
  template <class T>
  bool Gone(const std::string& name) {
    return Eventually([&] { return !store::GetTyped<T>(*store, "default", name).has_value(); });
  }
  /// The newest generation reached this phase.
  template <class T>
  bool Reaches(const std::string& name, const std::string& phase) {
    return Eventually([&] {
      const auto object = Get<T>(name);
      return object.status.phase == phase &&
             object.status.observed_generation == object.metadata.generation;
    });
  }

  std::string layers_dir;  ///< "": layers count wherever they lie
  const std::string dir =
      std::filesystem::temp_directory_path() / ("sless-reconcile-" + base::RandomHex(6));
  base::SystemClock clock;
  base::NullLogger log;
  observe::Registry metrics;
  std::unique_ptr<store::HookedStore> store =
      std::make_unique<store::HookedStore>(store::MakeMemoryStore(clock));
  FakeBuilder builder{dir};
  FakeArtifacts artifacts;
  FakeLogs logs;
  jobs::FakeInvoker invoker;
  FunctionReconciler::Options options{std::chrono::seconds(90), std::chrono::milliseconds(10),
                                      std::chrono::milliseconds(50), 5};
  gateway::Serving* gateway = nullptr;  ///< set before Start: in place of `serving`
  std::unique_ptr<FakeServing> serving;
  std::unique_ptr<BuildRunner> builds;
  std::unique_ptr<Controller> controller;
  std::unique_ptr<FunctionReconciler> functions;
  std::unique_ptr<trigger::CronScheduler> scheduler;
  std::unique_ptr<TriggerReconciler> triggers;
  std::unique_ptr<JobReconciler> jobs;
  std::unique_ptr<jobs::RunWorker> worker;
};

}  // namespace sless::reconcile
