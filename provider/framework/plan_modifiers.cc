#include "provider/framework/plan_modifiers.h"

namespace sless::framework {
namespace {

bool MayKeepPrior(const ModifyContext& context) {
  return context.has_prior && context.planned.IsUnknown() && !context.config.IsUnknown();
}

bool Changes(const ModifyContext& context) {
  return !context.root_prior.IsNull() && !(context.planned == context.prior);
}

}  // namespace

PlanModifier UseStateForUnknown() {
  return {"keeps its value once it is known", [](ModifyContext& context) {
            if (MayKeepPrior(context)) context.planned = context.prior;
          }};
}

PlanModifier UseNonNullStateForUnknown() {
  return {"keeps its value once it is set", [](ModifyContext& context) {
            if (MayKeepPrior(context) && !context.prior.IsNull()) context.planned = context.prior;
          }};
}

PlanModifier RequiresReplace() {
  return {"a change replaces the resource", [](ModifyContext& context) {
            if (Changes(context)) context.requires_replace = true;
          }};
}

PlanModifier RequiresReplaceIf(std::function<bool(const ModifyContext&)> condition,
                               std::string description) {
  return {"replaces the resource " + description,
          [condition = std::move(condition)](ModifyContext& context) {
            if (Changes(context) && condition(context)) context.requires_replace = true;
          }};
}

PlanModifier RequiresReplaceIfConfigured() {
  return {"a configured change replaces the resource", [](ModifyContext& context) {
            if (Changes(context) && !context.config.IsNull()) context.requires_replace = true;
          }};
}

}  // namespace sless::framework
