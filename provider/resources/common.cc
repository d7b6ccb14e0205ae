#include "provider/resources/common.h"

#include <fmt/format.h>

#include <condition_variable>
#include <mutex>

#include "client/api/rules.h"
#include "client/base/strings.h"
#include "provider/framework/defaults.h"
#include "provider/framework/plan_modifiers.h"
#include "provider/framework/validators.h"
#include "provider/resources/values.h"

namespace sless::resources {

using cty::Path;
using cty::Value;
using framework::Attribute;

namespace {

framework::Validator DnsLabel() {
  return framework::StringRule(
      "value must be a DNS label: 1 to 63 lower-case letters, digits and hyphens, a letter or "
      "digit at both ends",
      [](const std::string& text) { return base::DnsLabelProblem(text); });
}

// Which create wrote the object last; none: no create of a provider.
std::optional<std::string> OwnerIn(const api::Metadata& metadata) {
  const auto owner = metadata.annotations.find(std::string(api::kOwnerAnnotation));
  if (owner == metadata.annotations.end()) return std::nullopt;
  return owner->second;
}

std::string Sentence(std::string text) {
  if (!text.empty() && !base::Contains(".!?", text.back())) text += '.';
  return text;
}

}  // namespace

Attribute IntAttribute(std::string name, const api::Doc& doc, int64_t default_value,
                       std::string description) {
  return {std::move(name),
          framework::Int64(),
          {.optional = true,
           .computed = true,
           .description = std::move(description),
           .default_value = framework::Int(default_value),
           .validators = {framework::Between(doc.min, doc.max)}}};
}

Attribute WordAttribute(std::string name, const api::Doc& doc, std::string default_value,
                        std::string description) {
  framework::AttributeOptions options;
  options.required = default_value.empty();
  options.optional = options.computed = !default_value.empty();
  options.description = std::move(description);
  if (!default_value.empty()) options.default_value = framework::Str(default_value);
  options.validators = {framework::OneOf(base::Split(doc.values, '|'))};
  return {std::move(name), framework::String(), std::move(options)};
}

framework::Validator TextUpTo(size_t max_bytes) {
  // The text is not shown: it helps nobody, and it may come from a variable that is sensitive,
  // which no provider is told.
  return {fmt::format("value must have at most {} bytes", max_bytes),
          [max_bytes](const framework::ValidateContext& context, framework::Diagnostics& out) {
            if (context.value.kind() != Value::Kind::kString) return;
            const std::string rule = api::TextProblem(context.value.AsString(), max_bytes);
            if (rule.empty()) return;
            out.AddError(context.path, "Invalid Attribute Value",
                         fmt::format("Attribute {} {}.", context.path.ToString(), rule));
          }};
}

std::vector<Attribute> IdentityAttributes(const std::string& kind) {
  return {
      {"id",
       framework::String(),
       {.computed = true,
        .description = "`namespace/name`.",
        .plan_modifiers = {framework::UseStateForUnknown()}}},
      {"namespace",
       framework::String(),
       {.optional = true,
        .computed = true,
        .description = fmt::format("Namespace of the {}; the provider's where it is not set. It "
                                   "comes into being with its first "
                                   "object. Another namespace makes a new {}.",
                                   kind, kind),
        .validators = {DnsLabel()},
        .plan_modifiers = {framework::UseStateForUnknown(), framework::RequiresReplace()}}},
      {"name",
       framework::String(),
       {.required = true,
        .description = fmt::format("Name of the {}. Another name makes a new {}.", kind, kind),
        .validators = {DnsLabel()},
        .plan_modifiers = {framework::RequiresReplace()}}},
  };
}

Attribute FunctionAttribute(std::string description) {
  return {"function",
          framework::String(),
          {.required = true, .description = std::move(description), .validators = {DnsLabel()}}};
}

void PlanIdentity(const Session& session, const framework::ModifyPlanRequest& request,
                  Value& plan) {
  // A configuration that sets it to what is not known yet is not one that leaves it out.
  if (request.config.Get("namespace").IsNull() && request.prior.IsNull() &&
      session.default_namespace()) {
    plan = plan.With("namespace", Value::String(*session.default_namespace()));
  }
  const bool known = plan.Get("namespace").IsKnown() && plan.Get("name").IsKnown();
  plan =
      plan.With("id", known ? Value::String(TextAt(plan, "namespace") + "/" + TextAt(plan, "name"))
                            : Value::Unknown());
}

bool IsMoved(const Value& prior, const Value& plan) {
  return Differs(prior, plan, {"namespace", "name"});
}

rest::Name NameOf(const Value& value) {
  return {TextAt(value, "namespace"), TextAt(value, "name")};
}

std::string Describe(std::string_view kind, const rest::Name& name) {
  return fmt::format("{} {}/{}", kind, name.ns, name.name);
}

void ImportByName(std::string_view kind, const framework::ImportRequest& request,
                  framework::StateResponse& response) {
  auto* session = Session::Of(request.context, response.diagnostics);
  if (session == nullptr ||
      (!session->connected() && session->Remote(response.diagnostics) == nullptr))
    return;
  const auto parts = base::Split(request.id, '/');
  std::string problem;
  if (parts.size() != 2) {
    problem = parts.size() == 1 ? "there is no \"/\" in it" : "there is more than one \"/\" in it";
  } else if (auto bad = base::DnsLabelProblem(parts[0]); !bad.empty()) {
    problem = fmt::format("the namespace \"{}\" is wrong: {}", parts[0], bad);
  } else if (bad = base::DnsLabelProblem(parts[1]); !bad.empty()) {
    problem = fmt::format("the name \"{}\" is wrong: {}", parts[1], bad);
  }
  if (!problem.empty()) {
    std::string advice;
    if (parts.size() == 1 && base::DnsLabelProblem(request.id).empty()) {
      advice = fmt::format(" Did you mean \"{}/{}\"?",
                           session->default_namespace().value_or("default"), request.id);
    }
    response.diagnostics.AddError(
        Path("id"), "Unexpected Import Identifier",
        fmt::format("Expected import identifier with format: namespace/name, as in "
                    "\"default/my-{}\". Got: \"{}\": {}.{}",
                    kind, base::Truncate(request.id, 200), problem, advice));
    return;
  }
  response.state = response.state.With("id", Value::String(request.id))
                       .With("namespace", Value::String(parts[0]))
                       .With("name", Value::String(parts[1]));
}

void AddError(framework::Diagnostics& diagnostics, const base::Error& error,
              std::string_view action, const framework::FieldMap& fields,
              std::string_view fallback) {
  auto diagnostic = framework::FromError(error, action, fields);
  if (!diagnostic.path) diagnostic.path = Path(fallback);
  diagnostics.Add(std::move(diagnostic));
}

base::Error FailureError(const std::optional<api::Failure>& failure, std::string_view what,
                         std::string field) {
  base::Error error{base::Code::kFailedPrecondition,
                    fmt::format("{} is in phase Failed", what),
                    std::move(field),
                    "",
                    {}};
  if (!failure) return error;
  // What happened comes first; who it happened to is the summary's and the second paragraph's.
  error.message = fmt::format("{}\n\n{}, reason {}", Sentence(failure->message), error.message,
                              failure->reason);
  error.reason = failure->reason;
  error.source = {failure->file, static_cast<int>(failure->line), failure->log_tail};
  return error;
}

bool Pause(std::chrono::milliseconds time, const rest::Call& call, const base::Clock& clock) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, call.stop, std::min(time, call.deadline.Left(clock)), [] { return false; });
  return !call.stop.stop_requested() && !call.deadline.Passed(clock);
}

void KeepOwner(framework::PrivateData& data, const api::Metadata& metadata) {
  if (const auto owner = OwnerIn(metadata)) data.Set(std::string(kOwnerKey), *owner);
}

void KeepOwnerIfNone(framework::PrivateData& data, const api::Metadata& metadata) {
  if (data.Get(kOwnerKey)) return;
  data.Set(std::string(kOwnerKey), "");
  KeepOwner(data, metadata);
}

bool IsStillOurs(const std::string& what, const api::Metadata& written, const api::Metadata& now,
                 framework::Diagnostics& diagnostics) {
  const auto ours = OwnerIn(written);
  if (!ours || OwnerIn(now) == ours) return true;
  diagnostics.AddError(cty::Path("name"), "Created twice", TakenOverError(what).message);
  return false;
}

bool IsTakenOver(const api::Metadata& written, const api::Metadata& now) {
  const auto ours = OwnerIn(written);
  const auto theirs = OwnerIn(now);
  return ours && theirs && *ours != *theirs;
}

base::Error GoneError(const std::string& what) {
  return {base::Code::kNotFound,
          fmt::format("The {} is gone: somebody deleted it while this apply waited for it. Plan "
                      "and apply again.",
                      what),
          "",
          "",
          {}};
}

base::Error TakenOverError(const std::string& what) {
  return {base::Code::kFailedPrecondition,
          fmt::format("The {} was taken over by another create while this one ran. One name can "
                      "have one object only: look for a second resource with this name, in this "
                      "configuration or in another one that is applied now.",
                      what),
          "",
          "",
          {}};
}

base::Error ChangedError(const std::string& what, const std::string& written,
                         const std::string& now) {
  return {base::Code::kAborted,
          fmt::format("The {} changed while this apply waited for it: this apply wrote {}, now "
                      "there is {}. So it is not known whether what this apply wrote works.",
                      what, written, now),
          "",
          "",
          {}};
}

bool IsOwned(const std::string& owner, const api::Metadata& metadata, const std::string& what,
             framework::Diagnostics& diagnostics) {
  const auto now = OwnerIn(metadata);
  if (!now || *now == owner) return true;
  AddNotDeleted(what, diagnostics);
  return false;
}

void AddNotDeleted(const std::string& what, framework::Diagnostics& diagnostics) {
  diagnostics.AddWarning(
      cty::Path("name"), "Not deleted",
      fmt::format("The {} was taken over by another create since: by its own replacement, where "
                  "create_before_destroy is set, or by another configuration. It stays. To have it "
                  "made anew, leave create_before_destroy out: one name can have one object only.",
                  what));
}

}  // namespace sless::resources
