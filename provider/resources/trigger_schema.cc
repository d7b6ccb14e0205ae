#include <fmt/format.h>

#include <algorithm>

#include "client/api/rules.h"
#include "client/base/strings.h"
#include "client/cron/schedule.h"
#include "client/cron/time_zone.h"
#include "provider/framework/defaults.h"
#include "provider/framework/plan_modifiers.h"
#include "provider/framework/semantic.h"
#include "provider/framework/validators.h"
#include "provider/resources/common.h"
#include "provider/resources/trigger_resource.h"

namespace sless::resources {

using cty::Path;
using cty::Type;
using cty::Value;
using framework::Attribute;

namespace {

framework::Validator FromStatus(std::string what, base::Status (*check)(const std::string&)) {
  return framework::StringRule("", [what, check](const std::string& text) -> std::string {
    const auto status = check(text);
    return status ? "" : fmt::format("is not {}: {}", what, status.error().message);
  });
}

std::vector<Attribute> HttpAttributes() {
  const api::HttpSpec defaults;
  return {
      WordAttribute(
          "auth", DocOf<api::HttpSpec>("auth"), defaults.auth,
          "Who may call: everybody (`none`), or who sends a token of the server (`token`)."),
      {"methods",
       framework::SetOf(Type::String()),
       {.optional = true,
        .description = "HTTP methods that are served, in upper case; all where it is not set.",
        .validators = {framework::SizeAtLeast(1)}}},
      {"path",
       framework::String(),
       {.optional = true,
        .computed = true,
        .description = "Prefix below `/fn/{namespace}/{function}`, in whole segments; of all "
                       "triggers of the function the longest wins. Of several "
                       "with one path those count that are enabled and serve the method: first one "
                       "with `auth = \"token\"`, then the first name.",
        .default_value = framework::Str(defaults.path),
        .validators = {framework::StringRule("value must be a path like \"/\" or \"/v1/orders\"",
                                             api::HttpPathProblem)}}},
  };
}

std::vector<Attribute> CronAttributes() {
  const api::CronSpec defaults;
  return {
      {"schedule",
       framework::String(),
       {.required = true,
        .description = "Five fields as in crontab (minute, hour, day, month, weekday), or "
                       "`@hourly`, `@daily` (`@midnight`), `@weekly`, `@monthly`, `@yearly` "
                       "(`@annually`). Where day and weekday are both restricted, a day that "
                       "matches either fires.",
        .validators = {FromStatus(
            "a cron expression",
            [](const std::string& text) { return cron::ValidateSchedule(text); })}}},
      {"timezone",
       framework::String(),
       {.optional = true,
        .computed = true,
        .description = "IANA time zone of the schedule. When clocks change, a schedule of every "
                       "hour (`*`) follows the wall clock: a repeated hour fires again, a skipped "
                       "one does not. Any other schedule fires once a day as it says: a time in "
                       "the gap fires right after it, a repeated time fires the first time only.",
        .default_value = framework::Str(defaults.timezone),
        .validators = {FromStatus(
            "an IANA time zone",
            [](const std::string& text) { return cron::ValidateTimeZone(text); })}}},
      {"payload",
       framework::String(),
       {.optional = true,
        .description = "JSON text that the handler gets as its event; `{}` where it is not set. "
                       "Compared by meaning.",
        .validators = {TextUpTo(api::kMaxEventBytes), framework::JsonText()},
        .semantic_equal = framework::JsonEqual}},
      WordAttribute("overlap", DocOf<api::CronSpec>("overlap"), defaults.overlap,
                    "While the last run still runs: leave the new one out (`skip`), run it "
                    "afterwards (`queue`: one waits, further ones are left out), or run both "
                    "(`allow`)."),
      WordAttribute("misfire", DocOf<api::CronSpec>("misfire"), defaults.misfire,
                    "For runs missed while the server was down: none (`skip`), one (`once`), or "
                    "each of the last 24 hours, at most the newest 100 (`all`)."),
  };
}

// Exactly the settings that `type` names.
void CheckSettings(const Value& config, framework::Diagnostics& diagnostics) {
  const auto& type = config.Get("type");
  if (!type.IsKnown()) return;
  for (const std::string kind : {"http", "cron"}) {
    const auto& settings = config.Get(kind);
    if (type.AsString() == kind && settings.IsNull()) {
      diagnostics.AddError(
          Path(kind), "Invalid Attribute Combination",
          fmt::format("Attribute {} must be set where type is \"{}\"{}.", kind, kind,
                      kind == "http" ? "; \"http = {}\" takes all defaults"
                                     : ", with at least a schedule"));
    } else if (type.AsString() != kind && settings.IsKnown() &&
               (type.AsString() == "http" || type.AsString() == "cron")) {
      diagnostics.AddError(
          Path(kind), "Invalid Attribute Combination",
          fmt::format("Attribute {} must not be set where type is \"{}\".", kind, type.AsString()));
    }
  }
}

void CheckMethods(const Value& methods, framework::Diagnostics& diagnostics) {
  const auto& served = api::HttpMethods();
  for (const auto& method : methods.AsList()) {
    if (method.IsUnknown()) continue;
    const auto& text = method.AsString();
    if (std::find(served.begin(), served.end(), text) != served.end()) continue;
    const auto near = base::Nearest(text, served);
    diagnostics.AddError(
        Path("http").Attribute("methods"), "Invalid Attribute Value",
        fmt::format(
            "Attribute http.methods holds {}, which is no HTTP method that can be served: {}.{}",
            method.IsNull() ? "null" : '"' + base::Truncate(text, 50) + '"',
            base::Join(served, ", "),
            near.empty() ? "" : fmt::format(" Did you mean \"{}\"?", near)));
  }
}

}  // namespace

framework::Schema TriggerResource::Schema() const {
  framework::Schema schema;
  schema.description =
      "What starts a function: HTTP requests at a public URL, or a schedule. Several triggers may "
      "start one function.\n\nDisabling one trigger "
      "stops that one alone. When a function has triggers and all of them are disabled, its "
      "replicas go to zero.";
  schema.attributes = IdentityAttributes("trigger");
  const std::vector<Attribute> rest = {
      FunctionAttribute("Name of the function, in the same namespace. Write "
                        "`sless_function.x.name`, so that Terraform makes the function first."),
      {"type",
       framework::String(),
       {.required = true,
        .description = "What starts the function; exactly the attribute of that name must be set. "
                       "Another type makes a new trigger.",
        .validators = {framework::OneOf({"http", "cron"})},
        .plan_modifiers = {framework::RequiresReplace()}}},
      {"enabled",
       framework::Bool(),
       {.optional = true,
        .computed = true,
        .description = "`false` stops this trigger: an http trigger answers 503 with the reason, a "
                       "cron trigger does not fire.",
        .default_value = framework::True()}},
      {"http",
       framework::SingleNested(HttpAttributes()),
       {.optional = true, .description = "Settings of an http trigger."}},
      {"cron",
       framework::SingleNested(CronAttributes()),
       {.optional = true, .description = "Settings of a cron trigger."}},
      {"url",
       framework::String(),
       {.computed = true,
        .description = "Public URL of an http trigger, known in the plan; null for cron."}},
  };
  schema.attributes.insert(schema.attributes.end(), rest.begin(), rest.end());
  return schema;
}

void TriggerResource::ValidateConfig(const framework::ValidateRequest& request,
                                     framework::Diagnostics& diagnostics) const {
  CheckSettings(request.config, diagnostics);
  CheckMethods(request.config.Get("http").Get("methods"), diagnostics);
}

}  // namespace sless::resources
