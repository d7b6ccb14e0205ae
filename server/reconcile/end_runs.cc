#include "server/reconcile/end_runs.h"

#include <algorithm>

#include "server/domain/job_lifecycle.h"
#include "server/jobs/run_state.h"
#include "server/store/typed.h"

namespace sless::reconcile {

base::Result<bool> EndRuns(store::ObjectStore& store, const base::Clock& clock,
                           const CancelRun& cancel, std::vector<api::Run>& runs,
                           const std::string& why) {
  std::vector<api::Run> now;
  for (auto& run : runs) {
    if (domain::HasEnded(run)) {
      now.push_back(std::move(run));
      continue;
    }
    const auto& [ns, name] = std::pair(run.metadata.ns, run.metadata.name);
    auto asked = store::Mutate<api::Run>(store, ns, name, [&](api::Run& r) {
      jobs::AskToEnd(r, why, clock.Now());
      return base::Ok();
    });
    if (!asked && asked.error().code == base::Code::kNotFound) continue;
    if (!asked) return base::Err(asked.error());
    if (!domain::HasEnded(*asked)) cancel(store::KeyOf<api::Run>(ns, name));
    now.push_back(std::move(*asked));
  }
  runs = std::move(now);
  return std::all_of(runs.begin(), runs.end(), domain::HasEnded);
}

base::Status DeleteRun(store::ObjectStore& store, const api::Run& run) {
  const auto gone =
      store.Delete(store::KeyOf<api::Run>(run.metadata.ns, run.metadata.name), std::nullopt);
  return !gone && gone.error().code != base::Code::kNotFound ? gone : base::Ok();
}

}  // namespace sless::reconcile
