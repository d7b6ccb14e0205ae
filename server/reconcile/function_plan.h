#pragma once

// What a function needs next. Pure: no I/O, no clock, no locks.

#include <optional>
#include <string>
#include <vector>

#include "client/api/function.h"
#include "client/api/trigger.h"
#include "server/gateway/serving.h"
#include "server/reconcile/revision.h"

namespace sless::reconcile {

enum class FunctionStep {
  kServe,    ///< the serving revision is what is wanted: publish it with this spec's scaling
  kCreate,   ///< make the Revision object `number`
  kBuild,    ///< make the layers of revision `number`
  kPrepare,  ///< bring revision `number` to readiness, then switch
  kFailed,   ///< revision `number` failed for this generation: nothing to do until the spec changes
};
/// Something new was asked for and has not failed.
bool IsUnderway(FunctionStep step);
struct FunctionDecision {
  FunctionStep step = FunctionStep::kCreate;
  int64_t number = 0;
  bool operator==(const FunctionDecision&) const = default;
};

/// Value of the annotation api::kRetryAnnotation, "" if there is none.
std::string RetryOf(const api::Function& function);

/// `input` is domain::RevisionInput(function.spec), `least` the lowest number that a new revision
/// may have.
FunctionDecision DecideFunction(const api::Function& function, const std::string& input,
                                const std::vector<Revision>& revisions, int64_t least);

/// A revision with the same code that was built: a change of configuration builds nothing. None
/// where one of the same code failed since: its layers may be damaged, and a build looks at them.
std::optional<Revision> FindBuilt(const api::FunctionSpec& spec,
                                  const std::vector<Revision>& revisions);

/// When a build that ends at `now` counts as built: a revision of the same code and runtime keeps
/// the time of the first one, whatever had to be looked at again (an entrypoint).
std::string BuiltAt(const api::FunctionSpec& spec, const std::vector<Revision>& revisions,
                    const std::string& now);

/// A function with triggers of which none is enabled costs nothing: no replica stays, whatever the
/// spec says. It still can be called.
gateway::Scaling ScalingFor(const api::FunctionSpec& spec,
                            const std::vector<api::Trigger>& triggers);

std::vector<gateway::HttpRoute> HttpRoutesOf(const std::vector<api::Trigger>& triggers);

/// Revisions that may go: all but `serving`, `target`, and the newest `keep` that ended well or
/// failed.
std::vector<int64_t> Superseded(const std::vector<Revision>& revisions, int64_t serving,
                                int64_t target, size_t keep);

}  // namespace sless::reconcile
