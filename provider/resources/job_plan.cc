// What a plan says about a job: whether it will run, and that run_id only goes up.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "provider/resources/common.h"
#include "provider/resources/job_private.h"
#include "provider/resources/job_resource.h"
#include "provider/resources/values.h"

namespace sless::resources {

using cty::Path;
using cty::Value;

namespace {

const std::initializer_list<std::string_view> kRunAttributes = {
    "phase", "result_json", "error", "log_tail", "attempts", "started_at", "finished_at"};

// run_id 0: what the apply will say is known.
void PlanSkipped(Value& plan) {
  for (const auto name : kRunAttributes) plan = plan.With(name, Value::Null());
  plan = plan.With("phase", Value::String("Skipped")).With("attempts", Value::Int(0));
}

void PlanRun(Value& plan) {
  const auto& run_id = plan.Get("run_id");
  if (run_id.IsKnown() && run_id == Value::Int(0)) {
    PlanSkipped(plan);
  } else {
    MarkUnknown(kRunAttributes, plan);
  }
}

void CheckRaised(const Value& plan, int64_t last, framework::Diagnostics& diagnostics,
                 std::string_view more = "") {
  if (!plan.Get("run_id").IsKnown()) return;
  const int64_t wanted = IntAt(plan, "run_id");
  if (wanted == 0 || wanted >= last) return;
  diagnostics.AddError(
      Path("run_id"), "run_id lowered",
      fmt::format("The last run of job {} was run_id {}, so run_id {} lies behind it. {}, or 0 to "
                  "run nothing. (`terraform destroy` plans first: it needs one of these too, or "
                  "-refresh=false.){}",
                  TextAt(plan, "id"), last, wanted,
                  last == std::numeric_limits<int64_t>::max()
                      ? "There is no higher one: take another name for the job"
                      : fmt::format("Take {} or more to run again", last + 1),
                  more));
}

// A create that takes over what an earlier one or a tainted job leaves behind (see the class
// comment) must not fall behind its runs either. Its plan has no prior state, so the server is
// asked; where it does not answer, the apply will tell.
void CheckTakenOver(Backend& backend, const framework::ModifyPlanRequest& request,
                    const Value& plan, framework::Diagnostics& diagnostics) {
  const auto left = backend.Jobs().Get(
      NameOf(plan), {request.context.DeadlineIn(std::chrono::seconds(10)), request.context.stop});
  if (!left) return;
  const bool unfinished =
      left->metadata.annotations.contains(std::string(api::kCreatingAnnotation));
  CheckRaised(plan, left->status.last_run_id, diagnostics,
              unfinished ? ""
                         : " The job exists already: where it is not this resource's own, which is "
                           "tainted, import it or take another name.");
}

// A run that has not ended well under an unchanged run_id is taken up again by the apply: waited
// for, or tried once more.
bool MustRun(const Value& prior, const Value& plan) {
  if (Differs(prior, plan, {"run_id"})) return true;
  const auto phase = TextAt(prior, "phase");
  return phase != "Succeeded" && phase != "Skipped";
}

}  // namespace

void JobResource::ModifyPlan(const framework::ModifyPlanRequest& request,
                             framework::ModifyPlanResponse& response) const {
  // Only the delete of a tainted object comes without this mark: its plan has neither a prior state
  // nor the prior private data.
  if (response.plan.IsNull() || !request.prior.IsNull()) MarkWanted(response.private_data);
  if (response.plan.IsNull()) return;
  auto* session = Session::Of(request.context, response.diagnostics);
  if (session == nullptr || !session->Check(request.context.stop, response.diagnostics)) return;
  auto& plan = response.plan;
  PlanIdentity(*session, request, plan);
  if (request.prior.IsNull() || IsMoved(request.prior, plan)) {
    PlanRun(plan);
    if (request.prior.IsNull() && plan.Get("id").IsKnown()) {
      MarkMakes(response.private_data, TextAt(plan, "id"));
      if (session->connected())
        CheckTakenOver(*session->Remote(response.diagnostics), request, plan, response.diagnostics);
    }
    return;
  }
  CheckRaised(plan, std::max(IntAt(request.prior, "run_id"), LastRunId(response.private_data)),
              response.diagnostics);
  if (MustRun(request.prior, plan)) {
    PlanRun(plan);
  } else {
    CopyAttributes(request.prior, kRunAttributes, plan);
  }
}

}  // namespace sless::resources
