#include "provider/resources/trigger_resource.h"

#include <fmt/format.h>

#include "provider/resources/common.h"
#include "provider/resources/values.h"

namespace sless::resources {

using cty::Path;
using cty::Value;
using std::chrono::seconds;

namespace {

constexpr std::string_view kKind = "trigger";
constexpr seconds kDeadline{60};
constexpr seconds kDeleteDeadline{20 * 60};  // runs of a cron trigger end first
// A function that is made at the same time may come a moment after its trigger.
constexpr seconds kFunctionGrace{5};

// Private data: the last apply of the trigger failed, so the next plan must not be empty. Not set
// where one that stood fails later, for its function is missing: the plan then shows the function.
constexpr std::string_view kFailedKey = "failed";

framework::FieldMap Fields() {
  const Path http("http");
  const Path cron("cron");
  return {
      {"/metadata/name", Path("name")},
      {"/metadata/namespace", Path("namespace")},
      {"/spec/function", Path("function")},
      {"/spec/type", Path("type")},
      {"/spec/enabled", Path("enabled")},
      {"/spec/http", http},
      {"/spec/http/auth", http.Attribute("auth")},
      {"/spec/http/methods", http.Attribute("methods")},
      {"/spec/http/path", http.Attribute("path")},
      {"/spec/cron", cron},
      {"/spec/cron/schedule", cron.Attribute("schedule")},
      {"/spec/cron/timezone", cron.Attribute("timezone")},
      {"/spec/cron/payload", cron.Attribute("payload")},
      {"/spec/cron/overlap", cron.Attribute("overlap")},
      {"/spec/cron/misfire", cron.Attribute("misfire")},
  };
}

// Path "/" adds nothing, so that the URL of the whole function has no slash at its end.
std::string PublicUrl(std::string external_url, std::string_view ns, std::string_view function,
                      const std::string& path) {
  while (external_url.ends_with('/')) external_url.pop_back();
  return fmt::format("{}/fn/{}/{}{}", external_url, ns, function, path == "/" ? "" : path);
}

Value PlannedUrl(Session& session, const Value& plan, std::stop_token stop) {
  if (!plan.Get("type").IsKnown()) return Value::Unknown();
  if (TextAt(plan, "type") != "http") return Value::Null();
  const auto& path = plan.Get("http").Get("path");
  if (!session.connected() || !path.IsKnown() || !plan.Get("namespace").IsKnown() ||
      !plan.Get("function").IsKnown()) {
    return Value::Unknown();
  }
  const auto info = session.Info(stop);
  if (!info || info->external_url.empty()) return Value::Unknown();
  return Value::String(PublicUrl(info->external_url, TextAt(plan, "namespace"),
                                 TextAt(plan, "function"), path.AsString()));
}

Value HttpState(const api::HttpSpec& http, const Value& like) {
  const auto& methods = like.Get("methods");
  const bool keep_empty = methods.IsKnown() && methods.AsList().empty();
  return Value::Object(
      {{"auth", Value::String(http.auth)},
       {"methods",
        http.methods.empty() && !keep_empty ? Value::Null() : Value::StringSet(http.methods)},
       {"path", Value::String(http.path)}});
}

Value CronState(const api::CronSpec& cron, const Value& like) {
  return Value::Object({{"schedule", Value::String(cron.schedule)},
                        {"timezone", Value::String(cron.timezone)},
                        {"payload", TextOrNull(cron.payload, like.Get("payload"))},
                        {"overlap", Value::String(cron.overlap)},
                        {"misfire", Value::String(cron.misfire)}});
}

// Waits for the trigger to stand; for `now` see AwaitWritten. A Failed one is asked again for a
// moment: its function may be on the way.
base::Status Await(Backend& backend, const api::Trigger& written, const rest::Call& call,
                   const framework::Context& context, std::optional<api::Trigger>& now) {
  const auto& clock = context.clock;
  const auto grace = base::Deadline::After(clock, kFunctionGrace);
  while (true) {
    auto done = AwaitWritten(backend.Triggers(), kKind, written, call, context, now);
    if (!done || now->status.phase != "Failed" || grace.Passed(clock)) return done;
    if (!Pause(std::chrono::milliseconds(200), call, clock)) return done;
  }
}

// Ends a create or update: waits, and says what is wrong where the trigger does not stand.
void Finish(Backend& backend, const api::Trigger& written, std::string_view verb,
            const framework::ChangeRequest& request, const rest::Call& call,
            framework::StateResponse& response) {
  const auto what = Describe(kKind, {written.metadata.ns, written.metadata.name});
  std::optional<api::Trigger> ready;
  const auto done = Await(backend, written, call, request.context, ready);
  response.state = ready ? TriggerStateOf(*ready, request.plan) : Value::Null();
  if (!done) {
    response.private_data.Set(std::string(kFailedKey), "true");
    AddError(response.diagnostics, done.error(), fmt::format("{} {}", verb, what), Fields());
    return;
  }
  response.private_data.Remove(kFailedKey);
  if (ready->status.phase == "Failed") {
    response.private_data.Set(std::string(kFailedKey), "true");
    auto error = FailureError(ready->status.failure, "The " + what, "/spec/function");
    error.message += kNameTheFunction;
    AddError(response.diagnostics, error, fmt::format("{} {}", verb, what), Fields());
    return;
  }
  response.state = FillUnknown(request.plan, response.state);
}

}  // namespace

api::TriggerSpec TriggerSpecOf(const Value& plan) {
  api::TriggerSpec spec;
  spec.function = TextAt(plan, "function");
  spec.type = TextAt(plan, "type");
  spec.enabled = plan.Get("enabled").AsBool();
  if (const auto& http = plan.Get("http"); http.IsKnown()) {
    spec.http.emplace();
    spec.http->auth = TextAt(http, "auth");
    spec.http->path = TextAt(http, "path");
    for (const auto& method : http.Get("methods").AsList())
      spec.http->methods.push_back(method.AsString());
  }
  if (const auto& cron = plan.Get("cron"); cron.IsKnown()) {
    spec.cron.emplace();
    spec.cron->schedule = TextAt(cron, "schedule");
    spec.cron->timezone = TextAt(cron, "timezone");
    spec.cron->payload = TextAt(cron, "payload");
    spec.cron->overlap = TextAt(cron, "overlap");
    spec.cron->misfire = TextAt(cron, "misfire");
  }
  return spec;
}

Value TriggerStateOf(const api::Trigger& trigger, const Value& like) {
  const auto& spec = trigger.spec;
  return Value::Object({
      {"id", Value::String(trigger.metadata.ns + "/" + trigger.metadata.name)},
      {"namespace", Value::String(trigger.metadata.ns)},
      {"name", Value::String(trigger.metadata.name)},
      {"function", Value::String(spec.function)},
      {"type", Value::String(spec.type)},
      {"enabled", Value::Bool(spec.enabled)},
      {"http", spec.http ? HttpState(*spec.http, like.Get("http")) : Value::Null()},
      {"cron", spec.cron ? CronState(*spec.cron, like.Get("cron")) : Value::Null()},
      {"url", TextOrNull(trigger.status.url, Value::Null())},
  });
}

void TriggerResource::ModifyPlan(const framework::ModifyPlanRequest& request,
                                 framework::ModifyPlanResponse& response) const {
  if (response.plan.IsNull()) return;
  auto* session = Session::Of(request.context, response.diagnostics);
  if (session == nullptr || !session->Check(request.context.stop, response.diagnostics)) return;
  PlanIdentity(*session, request, response.plan);
  auto url = PlannedUrl(*session, response.plan, request.context.stop);
  const bool same = !request.prior.IsNull() &&
                    !Differs(request.prior, response.plan, {"id", "function", "type", "http"});
  if (url.IsUnknown() && same)
    url = request.prior.Get(
        "url");  // the server cannot be asked yet: no reason to expect another one
  // No other attribute can show that there is something to do.
  if (response.private_data.Get(kFailedKey)) url = Value::Unknown();
  response.plan = response.plan.With("url", url);
}

void TriggerResource::Create(const framework::ChangeRequest& request,
                             framework::StateResponse& response) const {
  auto* backend = Session::RemoteOf(request.context, response.diagnostics);
  if (backend == nullptr) return;
  const auto name = NameOf(request.plan);
  const rest::Call call{request.context.DeadlineIn(kDeadline), request.context.stop};
  api::Trigger wanted;
  wanted.metadata.ns = name.ns;
  wanted.metadata.name = name.name;
  wanted.spec = TriggerSpecOf(request.plan);
  const auto written = backend->Triggers().Create(wanted, call);
  if (!written) {
    AddError(response.diagnostics, written.error(), "create " + Describe(kKind, name), Fields());
    return;
  }
  KeepOwner(response.private_data, written->metadata);
  Finish(*backend, *written, "create", request, call, response);
  if (!response.diagnostics.HasError())
    EndCreate(backend->Triggers(), kKind, *written, call, response);
}

void TriggerResource::Read(const framework::ReadRequest& request,
                           framework::StateResponse& response) const {
  auto* backend = Session::ReaderOf(request.context, response.diagnostics);
  if (backend == nullptr) return;  // the state stays as it is
  const auto name = NameOf(request.state);
  const auto found = Fetch(backend->Triggers(), name, request.context);
  if (!found) {
    AddError(response.diagnostics, found.error(), "read " + Describe(kKind, name), Fields());
    return;
  }
  response.state = *found ? TriggerStateOf(**found, request.state) : Value::Null();
  if (*found) KeepOwnerIfNone(response.private_data, (*found)->metadata);
  if (*found && (*found)->status.phase != "Failed") response.private_data.Remove(kFailedKey);
  if (*found && (*found)->status.phase == "Failed" && (*found)->status.failure) {
    response.diagnostics.AddWarning(
        Path("function"), "Trigger does not work",
        fmt::format("The {} is in phase Failed, reason {}: {}.", Describe(kKind, name),
                    (*found)->status.failure->reason, (*found)->status.failure->message));
  }
}

void TriggerResource::Update(const framework::ChangeRequest& request,
                             framework::StateResponse& response) const {
  auto* backend = Session::RemoteOf(request.context, response.diagnostics);
  if (backend == nullptr) return;
  const auto name = NameOf(request.plan);
  const rest::Call call{request.context.DeadlineIn(kDeadline), request.context.stop};
  const auto written = Replace(
      backend->Triggers(), name,
      [&](api::Trigger& trigger) { trigger.spec = TriggerSpecOf(request.plan); }, call);
  if (!written) {
    AddError(response.diagnostics, written.error(), "update " + Describe(kKind, name), Fields());
    return;
  }
  Finish(*backend, *written, "update", request, call, response);
}

void TriggerResource::Delete(const framework::ChangeRequest& request,
                             framework::StateResponse& response) const {
  auto* backend = Session::RemoteOf(request.context, response.diagnostics);
  if (backend == nullptr) return;
  const auto name = NameOf(request.prior);
  const rest::Call call{request.context.DeadlineIn(kDeleteDeadline), request.context.stop};
  const auto gone =
      Remove(backend->Triggers(), kKind, name, TriggerSpecOf(request.prior), call, response);
  if (!gone)
    AddError(response.diagnostics, gone.error(), "delete " + Describe(kKind, name), Fields());
}

void TriggerResource::ImportState(const framework::ImportRequest& request,
                                  framework::StateResponse& response) const {
  ImportByName(kKind, request, response);
}

}  // namespace sless::resources
