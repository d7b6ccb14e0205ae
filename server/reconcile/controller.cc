#include "server/reconcile/controller.h"

#include <condition_variable>
#include <mutex>

#include "client/api/job.h"

namespace sless::reconcile {

Controller::Controller(Deps deps, Options options)
    : deps_(deps), options_(options), queue_(deps.clock) {}
Controller::~Controller() { Stop(); }

void Controller::Add(std::string_view kind, Reconciler& reconciler) {
  reconcilers_[std::string(kind)] = &reconciler;
}

base::Status Controller::Start() {
  subscription_ = deps_.store.Subscribe([this](const store::Change& change) { OnChange(change); });
  RETURN_IF_ERROR(PutAll(true));
  for (int i = 0; i < options_.workers; ++i) threads_.emplace_back([this] { Work(); });
  threads_.emplace_back([this] { Resync(stop_.get_token()); });
  return base::Ok();
}

void Controller::Stop() {
  stop_.request_stop();
  subscription_.reset();
  threads_.clear();
}

void Controller::OnChange(const store::Change& change) {
  if (reconcilers_.contains(change.key.kind)) return queue_.Add(change.key);
  if (change.key.kind != api::kKindRun) return;
  // "<job>.<runId>": the run's job shows its state. Names are DNS labels, so the first dot ends the
  // name.
  const auto dot = change.key.name.find('.');
  if (dot == std::string::npos || change.key.name.ends_with(".cron")) return;
  queue_.Add({std::string(api::kKindJob), change.key.ns, change.key.name.substr(0, dot)});
}

base::Status Controller::PutAll(bool first) {
  for (const auto& [kind, reconciler] : reconcilers_) {
    store::ListQuery query{kind, "", "", 1000, ""};
    do {
      ASSIGN_OR_RETURN(const auto page, deps_.store.List(query));
      for (const auto& item : page.items) {
        if (first) unseen_.With([&](auto& unseen) { unseen.insert(item.key); });
        queue_.Add(item.key);
      }
      query.continue_after = page.continue_after;
    } while (!query.continue_after.empty());
  }
  return base::Ok();
}

bool Controller::Settled() const {
  return unseen_.With([](const auto& unseen) { return unseen.empty(); });
}

void Controller::Work() {
  while (const auto key = queue_.Take(stop_.get_token())) {
    const auto it = reconcilers_.find(key->kind);
    if (it != reconcilers_.end()) {
      const auto next = it->second->Reconcile(*key);
      if (next) {
        queue_.Forget(*key);
        if (next->after) queue_.AddAfter(*key, *next->after);
      } else {
        // Two writers meeting is everyday life, no fault.
        if (next.error().code != base::Code::kAborted) {
          deps_.log.Warn("reconcile failed",
                         {{"object", key->ToString()}, {"error", base::ToString(next.error())}});
        }
        queue_.Retry(*key);
      }
      unseen_.With([&](auto& unseen) { unseen.erase(*key); });
    }
    queue_.Done(*key);
  }
}

void Controller::Resync(std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    never.wait_for(lock, stop, options_.resync, [] { return false; });
    if (stop.stop_requested()) return;
    if (const auto status = PutAll(false); !status) {
      deps_.log.Warn("resync failed", {{"error", base::ToString(status.error())}});
    }
  }
}

}  // namespace sless::reconcile
