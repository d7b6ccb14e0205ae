#include <fmt/format.h>

#include "client/api/rules.h"
#include "client/base/strings.h"
#include "provider/framework/defaults.h"
#include "provider/framework/timeouts.h"
#include "provider/framework/validators.h"
#include "provider/resources/common.h"
#include "provider/resources/function_resource.h"
#include "provider/resources/values.h"

namespace sless::resources {

using cty::Path;
using cty::Type;
using cty::Value;
using framework::Attribute;

namespace {

// DefaultTimeout of function_resource.cc in words.
constexpr const char* kChangeTime = "`build_timeout_sec` and a minute more, at least `2m`";

api::Doc Doc(std::string_view field) { return DocOf<api::FunctionSpec>(field); }

framework::Validator NotEmpty() {
  return framework::StringRule(
      "", [](const std::string& text) { return text.empty() ? "must not be empty" : ""; });
}

Attribute SourceAttributeOf(std::string name, size_t max, std::string description,
                            std::vector<Path> others) {
  framework::AttributeOptions options{.optional = true, .description = std::move(description)};
  options.validators = {NotEmpty(), TextUpTo(max)};
  if (!others.empty()) options.validators.push_back(framework::ExactlyOneOf(std::move(others)));
  return {std::move(name), framework::String(), std::move(options)};
}

std::vector<Attribute> CodeAttributes() {
  return {
      WordAttribute("runtime", Doc("runtime"), "", "Language and version."),
      {"entrypoint",
       framework::String(),
       {.optional = true,
        .computed = true,
        .description = "The handler, as `file.function`, the file without its ending: "
                       "`handler.handle` is the function `handle` of `handler.py` or `handler.js`. "
                       "Folders are written with `/`: `src/handler.handle`.",
        .default_value = framework::Str(api::FunctionSpec().entrypoint),
        .validators = {framework::StringRule("", api::EntrypointProblem)}}},
      SourceAttributeOf("source_dir", api::kMaxSourcePathBytes,
                        "Directory with the code. `.git`, "
                        "`__pycache__`, `*.pyc`, `.DS_Store`, `node_modules` beside a lock file, "
                        "what Terraform keeps beside a configuration (`.terraform`, `*.tfstate`, "
                        "`*.tfvars`, …) and what a `.slessignore` file names are left out.",
                        {Path("source_zip"), Path("source_code")}),
      SourceAttributeOf(
          "source_zip", api::kMaxSourcePathBytes,
          "Zip file with the code, in place of `source_dir`. Only its content counts, not how or "
          "when it was packed.",
          {}),
      SourceAttributeOf("source_code", api::kMaxInlineCodeBytes,
                        "Text of a function that is one file, named after `entrypoint`, in place "
                        "of `source_dir`.",
                        {}),
      {"code_hash",
       framework::String(),
       {.optional = true,
        .description = "Any text, such as a hash or a date; a change of it deploys anew although "
                       "the code is the same. Changes of the code are seen without it, by "
                       "`source_hash`.",
        .validators = {TextUpTo(api::kMaxCodeHashBytes)}}},
  };
}

std::vector<Attribute> ConfigurationAttributes() {
  const api::FunctionSpec defaults;
  return {
      {"environment",
       framework::MapOf(Type::String()),
       {.optional = true,
        .description =
            "Environment variables, at most 128 KiB in all. As with any argument, the values stand "
            "in the plan, the state and the server's database; a value from a variable that is "
            "marked `sensitive` is not shown in the plan.",
        .validators = {framework::SizeAtMost(api::kMaxVariables),
                       framework::EachKey(
                           framework::StringRule("letters, digits and `_`, no digit first; names "
                                                 "that begin with `SLESS_` are reserved",
                                                 api::VariableNameProblem))}}},
      {"labels",
       framework::MapOf(Type::String()),
       {.optional = true,
        .description = "Labels for people and tools; no effect on what runs.",
        .validators = {framework::SizeAtMost(api::kMaxLabels),
                       framework::EachKey(framework::StringRule(
                           "1 to 128 letters, digits and `-_./`", api::LabelKeyProblem)),
                       framework::NoNullElements(),
                       framework::EachElement(TextUpTo(api::kMaxLabelValueBytes))}}},
      IntAttribute("memory_mb", Doc("memoryMb"), defaults.memory_mb,
                   "Memory of one replica in MiB."),
      IntAttribute(
          "timeout_sec", Doc("timeoutSec"), defaults.timeout_sec,
          "Longest time of one call in seconds; then the call is ended and answered with 504."),
      IntAttribute("concurrency", Doc("concurrency"), defaults.concurrency,
                   "Requests that one replica works on at once."),
      {"replicas",
       framework::Int64(),
       {.optional = true,
        .description = "Fixed count of replicas; 0 switches the function off. Cannot be set "
                       "together with a `min_replicas` or `max_replicas` other than its default.",
        .validators = {framework::Between(Doc("replicas").min, Doc("replicas").max)}}},
      IntAttribute(
          "min_replicas", Doc("minReplicas"), defaults.min_replicas,
          "Least replicas; 0 lets an idle function cost nothing, at the price of a cold start."),
      IntAttribute("max_replicas", Doc("maxReplicas"), defaults.max_replicas,
                   "Most replicas; not below `min_replicas`."),
      IntAttribute("idle_timeout_sec", Doc("idleTimeoutSec"), defaults.idle_timeout_sec,
                   "A replica above the least stops after so many seconds without a request."),
      IntAttribute("build_timeout_sec", Doc("buildTimeoutSec"), defaults.build_timeout_sec,
                   "Longest time of a build (installing dependencies) in seconds."),
  };
}

std::vector<Attribute> ComputedAttributes() {
  const auto computed = [](std::string name, framework::AttributeType type,
                           std::string description) {
    return Attribute{std::move(name),
                     std::move(type),
                     {.computed = true, .description = std::move(description)}};
  };
  return {
      computed("source_hash", framework::String(),
               "Hash of the code that is serving (of the files' paths, bytes and executable bits); "
               "empty where none is. Known in the plan."),
      computed("invoke_url", framework::String(),
               "POST an event here, with a token, to call the function."),
      computed("phase", framework::String(),
               "`Pending`, `Building`, `Deploying`, `Ready` or `Failed`."),
      computed("revision", framework::Int64(),
               "Number of the serving revision; each change of code or configuration makes one."),
      computed("last_built_at", framework::String(), "When the code was last built, RFC 3339."),
  };
}

// The framework's validators would show the value; a value of the environment is in no diagnostic.
void CheckEnvironment(const Value& environment, framework::Diagnostics& diagnostics) {
  size_t bytes = 0;
  for (const auto& [name, value] : environment.AsMap()) {
    const auto path = Path("environment").Key(name);
    bytes += name.size() + value.AsString().size() + 2;
    if (value.IsNull()) {
      diagnostics.AddError(
          path, "Invalid Attribute Value",
          fmt::format("Attribute {} must not be null. Leave the variable out, or set it to \"\".",
                      path.ToString()));
    } else if (base::Contains(value.AsString(), '\0')) {
      diagnostics.AddError(
          path, "Invalid Attribute Value",
          fmt::format("Attribute {} holds a NUL character, which no environment variable can.",
                      path.ToString()));
    }
  }
  if (bytes > api::kMaxEnvironmentBytes) {
    diagnostics.AddError(Path("environment"), "Invalid Attribute Value",
                         fmt::format("Attribute environment is too large: {} bytes, at most {} are "
                                     "possible. Put large values in a file of the "
                                     "source.",
                                     bytes, api::kMaxEnvironmentBytes));
  }
}

// The defaults are no conflict: a host that writes a configuration from an imported state writes
// them too.
void CheckFixedReplicas(const Value& config, framework::Diagnostics& diagnostics) {
  const api::FunctionSpec defaults;
  for (const auto& [name, value] : {std::pair("min_replicas", defaults.min_replicas),
                                    std::pair("max_replicas", defaults.max_replicas)}) {
    const auto& other = config.Get(name);
    if (!other.IsKnown() || other == Value::Int(value)) continue;
    diagnostics.AddError(
        Path("replicas"), "Invalid Attribute Combination",
        fmt::format("Attribute replicas cannot be set together with {}: remove one of them.",
                    name));
  }
}

void CheckReplicas(const Value& config, framework::Diagnostics& diagnostics) {
  if (config.Get("replicas").IsKnown()) return CheckFixedReplicas(config, diagnostics);
  const auto& least = config.Get("min_replicas");
  const auto& most = config.Get("max_replicas");
  if (least.IsUnknown() || most.IsUnknown()) return;
  const api::FunctionSpec defaults;
  const int64_t min =
      least.IsNull() ? defaults.min_replicas : least.AsNumber().AsInt64().value_or(0);
  const int64_t max =
      most.IsNull() ? defaults.max_replicas : most.AsNumber().AsInt64().value_or(INT64_MAX);
  if (min <= max) return;
  diagnostics.AddError(
      Path(least.IsNull() ? "max_replicas" : "min_replicas"), "Invalid Attribute Combination",
      fmt::format("min_replicas is {}{} and must not be above max_replicas, which is {}{}.", min,
                  least.IsNull() ? " (the default)" : "", max,
                  most.IsNull() ? " (the default)" : ""));
}

}  // namespace

framework::Schema FunctionResource::Schema() const {
  framework::Schema schema;
  schema.description =
      "A function: code from a directory, a zip or a text, with its configuration. Create and "
      "update wait until the new revision serves, and fail where another writer changes or "
      "deletes the function meanwhile. A "
      "failed update leaves the old revision serving, and shows as a difference in the next "
      "plan.\n\nA function is private: jobs, cron "
      "triggers and the authenticated `invoke_url` reach it. An http trigger (`sless_trigger`) "
      "makes it answer in public.";
  for (auto&& part : {IdentityAttributes("function"), CodeAttributes(), ConfigurationAttributes(),
                      ComputedAttributes()}) {
    schema.attributes.insert(schema.attributes.end(), part.begin(), part.end());
  }
  schema.blocks = {framework::TimeoutsBlock(
      {{"create", kChangeTime}, {"update", kChangeTime}, {"delete", "`2m`"}})};
  return schema;
}

void FunctionResource::ValidateConfig(const framework::ValidateRequest& request,
                                      framework::Diagnostics& diagnostics) const {
  CheckEnvironment(request.config.Get("environment"), diagnostics);
  CheckReplicas(request.config, diagnostics);
}

}  // namespace sless::resources
