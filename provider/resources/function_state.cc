#include "provider/resources/function_state.h"

#include <algorithm>
#include <array>

#include "client/base/strings.h"
#include "provider/resources/function_source.h"
#include "provider/resources/values.h"

namespace sless::resources {

using cty::Path;
using cty::Value;

namespace {

// An annotation: which of the attributes that may be null or empty are empty in the configuration.
// The spec does not tell one from the other, and an import must find what is written there.
constexpr std::string_view kEmptyAnnotation = "sless.dev/empty";
constexpr std::array kMayBeEmpty{"environment", "labels"};

// Import sets name and namespace only; the runtime is required.
bool IsImported(const Value& state) { return state.Get("runtime").IsNull(); }

}  // namespace

api::FunctionSpec FunctionSpecOf(const Value& plan) {
  api::FunctionSpec spec;
  spec.runtime = TextAt(plan, "runtime");
  spec.entrypoint = TextAt(plan, "entrypoint");
  spec.source = SourceOf(plan);
  spec.source.hash = TextAt(plan, "source_hash");
  if (plan.Get("code_hash").IsKnown()) spec.code_hash = TextAt(plan, "code_hash");
  spec.environment = MapAt(plan, "environment");
  spec.labels = MapAt(plan, "labels");
  spec.memory_mb = IntAt(plan, "memory_mb");
  spec.timeout_sec = IntAt(plan, "timeout_sec");
  spec.concurrency = IntAt(plan, "concurrency");
  if (plan.Get("replicas").IsKnown()) spec.replicas = IntAt(plan, "replicas");
  spec.min_replicas = IntAt(plan, "min_replicas");
  spec.max_replicas = IntAt(plan, "max_replicas");
  spec.idle_timeout_sec = IntAt(plan, "idle_timeout_sec");
  spec.build_timeout_sec = IntAt(plan, "build_timeout_sec");
  return spec;
}

void KeepEmpty(const Value& plan, api::Metadata& metadata) {
  std::vector<std::string> empty;
  for (const auto* name : kMayBeEmpty) {
    if (plan.Get(name) == Value::StringMap({})) empty.emplace_back(name);
  }
  const std::string key(kEmptyAnnotation);
  if (empty.empty()) {
    metadata.annotations.erase(key);
  } else {
    metadata.annotations[key] = base::Join(empty, ",");
  }
}

Value FunctionStateOf(const api::Function& function, const Value& current) {
  Value like = current;
  if (IsImported(current)) {
    const auto kept = function.metadata.annotations.find(std::string(kEmptyAnnotation));
    const auto names = kept == function.metadata.annotations.end() ? std::vector<std::string>()
                                                                   : base::Split(kept->second, ',');
    for (const auto& name : names) {
      if (std::ranges::find(kMayBeEmpty, name) != kMayBeEmpty.end())
        like = like.With(name, Value::StringMap({}));
    }
  }
  const auto& status = function.status;
  // Failed: the spec is a wish that did not come true. Any other phase: the spec is what serves, or
  // will. A phase from before the last change says nothing of it.
  const bool seen = status.observed_generation >= function.metadata.generation;
  const bool failed = seen && status.phase == "Failed";
  const auto& spec = failed && status.serving ? *status.serving : function.spec;
  const bool code = spec.source.type == "code";
  const auto& ns = function.metadata.ns;
  const auto& name = function.metadata.name;
  return Value::Object({
      {"id", Value::String(ns + "/" + name)},
      {"namespace", Value::String(ns)},
      {"name", Value::String(name)},
      {"runtime", Value::String(spec.runtime)},
      {"entrypoint", Value::String(spec.entrypoint)},
      {"source_dir", spec.source.type == "dir" ? Value::String(spec.source.path) : Value::Null()},
      {"source_zip", spec.source.type == "zip" ? Value::String(spec.source.path) : Value::Null()},
      {"source_code", code ? Value::String(spec.source.code) : Value::Null()},
      {"source_hash", Value::String(status.serving ? status.serving->source.hash : "")},
      {"code_hash", spec.code_hash ? Value::String(*spec.code_hash) : Value::Null()},
      {"environment", MapOrNull(spec.environment, like.Get("environment"))},
      {"labels", MapOrNull(spec.labels, like.Get("labels"))},
      {"memory_mb", Value::Int(spec.memory_mb)},
      {"timeout_sec", Value::Int(spec.timeout_sec)},
      {"concurrency", Value::Int(spec.concurrency)},
      {"replicas", spec.replicas ? Value::Int(*spec.replicas) : Value::Null()},
      {"min_replicas", Value::Int(spec.min_replicas)},
      {"max_replicas", Value::Int(spec.max_replicas)},
      {"idle_timeout_sec", Value::Int(spec.idle_timeout_sec)},
      {"build_timeout_sec", Value::Int(spec.build_timeout_sec)},
      {"invoke_url", TextOrNull(status.invoke_url, Value::Null())},
      {"phase", Value::String(seen ? status.phase : "Pending")},
      {"revision", Value::Int(status.revision)},
      {"last_built_at", TextOrNull(status.last_built_at, Value::Null())},
      {"timeouts", like.Get("timeouts")},
  });
}

framework::FieldMap FunctionFields(const api::Source& source) {
  const Path code(SourceAttribute(source));
  return {
      {"/metadata/name", Path("name")},
      {"/metadata/namespace", Path("namespace")},
      {"/spec/runtime", Path("runtime")},
      {"/spec/entrypoint", Path("entrypoint")},
      {"/spec/source", code},
      {"/spec/codeHash", Path("code_hash")},
      {"/spec/environment", Path("environment"), true},
      {"/spec/labels", Path("labels"), true},
      {"/spec/memoryMb", Path("memory_mb")},
      {"/spec/timeoutSec", Path("timeout_sec")},
      {"/spec/concurrency", Path("concurrency")},
      {"/spec/replicas", Path("replicas")},
      {"/spec/minReplicas", Path("min_replicas")},
      {"/spec/maxReplicas", Path("max_replicas")},
      {"/spec/idleTimeoutSec", Path("idle_timeout_sec")},
      {"/spec/buildTimeoutSec", Path("build_timeout_sec")},
  };
}

}  // namespace sless::resources
