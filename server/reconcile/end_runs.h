#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/api/job.h"
#include "client/base/clock.h"
#include "server/store/object_store.h"

namespace sless::reconcile {

/// Ends the call of a run, if it is running.
using CancelRun = std::function<void(const api::ObjectKey& run)>;

/// Asks for the end of those of `runs` that have not ended and brings them up to date. Runs that
/// are gone are left out. True: all of them have ended. False: calls still run; come back. Errors:
/// those of the store.
base::Result<bool> EndRuns(store::ObjectStore& store, const base::Clock& clock,
                           const CancelRun& cancel, std::vector<api::Run>& runs,
                           const std::string& why);

/// Removes a run that has ended; one that is gone is no error.
base::Status DeleteRun(store::ObjectStore& store, const api::Run& run);

}  // namespace sless::reconcile
