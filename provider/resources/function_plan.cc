// What a plan says about a function's computed attributes: known wherever it can be known, so that
// a plan shows what will move.

#include "provider/resources/common.h"
#include "provider/resources/function_resource.h"
#include "provider/resources/function_source.h"
#include "provider/resources/values.h"

namespace sless::resources {

using cty::Value;

namespace {

// Hash of the code, known in the plan. Unknown where the source, or what the check of its handler
// needs, is not known yet.
void PlanSource(const Value& config, Value& plan, framework::Diagnostics& diagnostics) {
  const auto source = SourceOf(config);
  const auto& runtime = plan.Get("runtime");
  const auto& entrypoint = plan.Get("entrypoint");
  if (source.type.empty() || !runtime.IsKnown() || !entrypoint.IsKnown()) {
    MarkUnknown({"source_hash"}, plan);
    return;
  }
  const auto loaded = LoadSource(source, runtime.AsString(), entrypoint.AsString(), diagnostics);
  plan = plan.With("source_hash", loaded ? Value::String(loaded->hash) : Value::Unknown());
}

// To the server null and empty are one: a change from one to the other moves nothing there.
Value WithoutNulls(Value function) {
  if (function.Get("environment").IsNull())
    function = function.With("environment", Value::StringMap({}));
  return function;
}

void PlanUpdate(const Value& prior, Value& plan) {
  CopyAttributes(prior, {"invoke_url", "phase", "revision", "last_built_at"}, plan);
  const Value before = WithoutNulls(prior), after = WithoutNulls(plan);
  const bool code = Differs(before, after, {"source_hash", "code_hash", "runtime"});
  const bool revision =
      code || Differs(before, after,
                      {"entrypoint", "environment", "memory_mb", "timeout_sec", "concurrency"});
  // A function that is not ready is brought there by the apply, with whatever revision that takes.
  const bool settled = TextAt(prior, "phase") == "Ready";
  if (!settled) MarkUnknown({"phase"}, plan);
  if (prior.Get("invoke_url").IsNull()) MarkUnknown({"invoke_url"}, plan);
  if (revision || !settled) MarkUnknown({"revision"}, plan);
  if (code || !settled) MarkUnknown({"last_built_at"}, plan);
}

}  // namespace

void FunctionResource::ModifyPlan(const framework::ModifyPlanRequest& request,
                                  framework::ModifyPlanResponse& response) const {
  if (response.plan.IsNull()) return;  // a destroy needs neither source nor server
  auto* session = Session::Of(request.context, response.diagnostics);
  if (session == nullptr || !session->Check(request.context.stop, response.diagnostics)) return;
  auto& plan = response.plan;
  PlanIdentity(*session, request, plan);
  PlanSource(request.config, plan, response.diagnostics);
  if (request.prior.IsNull() || IsMoved(request.prior, plan)) {
    MarkUnknown({"invoke_url", "phase", "revision", "last_built_at"}, plan);
  } else {
    PlanUpdate(request.prior, plan);
  }
}

}  // namespace sless::resources
