#include "server/reconcile/function_plan.h"

#include <algorithm>

namespace sless::reconcile {
namespace {

const Revision* Find(const std::vector<Revision>& revisions, int64_t number) {
  for (const auto& revision : revisions) {
    if (revision.spec.number == number) return &revision;
  }
  return nullptr;
}

}  // namespace

bool IsUnderway(FunctionStep step) {
  return step == FunctionStep::kCreate || step == FunctionStep::kBuild ||
         step == FunctionStep::kPrepare;
}

std::string RetryOf(const api::Function& function) {
  const auto it = function.metadata.annotations.find(std::string(api::kRetryAnnotation));
  return it == function.metadata.annotations.end() ? "" : it->second;
}

FunctionDecision DecideFunction(const api::Function& function, const std::string& input,
                                const std::vector<Revision>& revisions, int64_t least) {
  const auto* serving =
      function.status.revision > 0 ? Find(revisions, function.status.revision) : nullptr;
  if (serving != nullptr && serving->spec.input == input)
    return {FunctionStep::kServe, serving->spec.number};

  const Revision* newest = nullptr;
  for (const auto& revision : revisions) {
    if (newest == nullptr || revision.spec.number > newest->spec.number) newest = &revision;
  }
  const FunctionDecision create{FunctionStep::kCreate,
                                std::max({least, function.status.revision + 1,
                                          newest == nullptr ? 1 : newest->spec.number + 1})};
  // The serving revision is never brought up a second time: what is wanted now comes after it.
  if (newest == nullptr || newest == serving || newest->spec.input != input) return create;
  const auto& status = newest->status;
  if (status.phase == "Failed") {
    const bool same_wish = newest->spec.generation == function.metadata.generation &&
                           status.retry == RetryOf(function);
    return same_wish ? FunctionDecision{FunctionStep::kFailed, newest->spec.number} : create;
  }
  return {status.phase == "Pending" ? FunctionStep::kBuild : FunctionStep::kPrepare,
          newest->spec.number};
}

std::optional<Revision> FindBuilt(const api::FunctionSpec& spec,
                                  const std::vector<Revision>& revisions) {
  const Revision* newest = nullptr;
  for (const auto& revision : revisions) {
    const auto& other = revision.spec.function;
    const auto& phase = revision.status.phase;
    if (phase != "Built" && phase != "Ready" && phase != "Failed") continue;
    if (other.runtime != spec.runtime || other.entrypoint != spec.entrypoint ||
        other.source.hash != spec.source.hash || other.code_hash != spec.code_hash ||
        (other.source.type == "code") != (spec.source.type == "code")) {
      continue;
    }
    if (newest == nullptr || newest->spec.number < revision.spec.number) newest = &revision;
  }
  if (newest == nullptr || newest->status.phase == "Failed") return std::nullopt;
  return *newest;
}

std::string BuiltAt(const api::FunctionSpec& spec, const std::vector<Revision>& revisions,
                    const std::string& now) {
  for (const auto& revision : revisions) {
    const auto& other = revision.spec.function;
    if (revision.status.phase == "Ready" && other.runtime == spec.runtime &&
        other.source.hash == spec.source.hash && other.code_hash == spec.code_hash) {
      return revision.status.built_at;
    }
  }
  return now;
}

gateway::Scaling ScalingFor(const api::FunctionSpec& spec,
                            const std::vector<api::Trigger>& triggers) {
  gateway::Scaling scaling;
  scaling.min_replicas = static_cast<int>(spec.replicas.value_or(spec.min_replicas));
  scaling.max_replicas = static_cast<int>(spec.replicas.value_or(spec.max_replicas));
  scaling.idle_timeout = std::chrono::seconds(spec.idle_timeout_sec);
  const bool none_enabled =
      !triggers.empty() &&
      std::none_of(triggers.begin(), triggers.end(), [](const auto& t) { return t.spec.enabled; });
  if (none_enabled) {
    scaling.min_replicas = 0;
    scaling.idle_timeout = std::chrono::seconds(1);
  }
  return scaling;
}

std::vector<gateway::HttpRoute> HttpRoutesOf(const std::vector<api::Trigger>& triggers) {
  std::vector<gateway::HttpRoute> routes;
  for (const auto& trigger : triggers) {
    if (trigger.spec.type != "http") continue;
    routes.push_back(
        {trigger.metadata.name, trigger.spec.enabled, trigger.spec.http.value_or(api::HttpSpec{})});
  }
  return routes;
}

std::vector<int64_t> Superseded(const std::vector<Revision>& revisions, int64_t serving,
                                int64_t target, size_t keep) {
  std::vector<const Revision*> rest;
  for (const auto& revision : revisions) {
    if (revision.spec.number != serving && revision.spec.number != target)
      rest.push_back(&revision);
  }
  std::sort(rest.begin(), rest.end(),
            [](auto* a, auto* b) { return a->spec.number > b->spec.number; });
  std::vector<int64_t> gone;
  size_t kept = 0;
  for (const auto* revision : rest) {
    const bool ended = revision->status.phase == "Ready" || revision->status.phase == "Failed";
    if (ended && kept < keep) {
      ++kept;
    } else {
      gone.push_back(revision->spec.number);
    }
  }
  return gone;
}

}  // namespace sless::reconcile
