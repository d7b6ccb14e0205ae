#include "provider/framework/testing/core_driver.h"

#include <fmt/format.h>

#include <cstdlib>

#include "client/base/strings.h"
#include "provider/cty/msgpack.h"
#include "provider/cty/wire_json.h"
#include "provider/framework/engine/apply.h"
#include "provider/framework/engine/consistency.h"
#include "provider/framework/engine/read.h"
#include "provider/framework/engine/shape.h"
#include "provider/framework/engine/state.h"
#include "provider/framework/engine/validate.h"

namespace sless::framework::testing {
namespace {

constexpr ClientCapabilities kCapabilities{.deferral_allowed = false,
                                           .write_only_attributes_allowed = true};

void Append(std::vector<std::string>& to, std::string_view what,
            const std::vector<std::string>& problems) {
  for (const auto& problem : problems) to.push_back(fmt::format("{}: {}", what, problem));
}

bool CountsForReplace(const Schema& schema, const cty::Path& path, const cty::Value& prior,
                      const cty::Value& planned) {
  const Attribute* attribute = FindAttribute(schema, path);
  if (attribute != nullptr && attribute->options.write_only) return true;
  const auto before = prior.At(path);
  const auto after = planned.At(path);
  return before.value_or(cty::Value()) != after.value_or(cty::Value()) ||
         (after && after->IsUnknown());
}

}  // namespace

std::string ToString(PlannedAction action) {
  switch (action) {
    case PlannedAction::kNoOp:
      return "no-op";
    case PlannedAction::kCreate:
      return "create";
    case PlannedAction::kUpdate:
      return "update";
    case PlannedAction::kReplace:
      return "replace";
    case PlannedAction::kDelete:
      return "delete";
  }
  return "?";
}

std::string StepResult::Problems() const {
  std::string out = diagnostics.ToString();
  for (const auto& violation : violations) out += "\nviolation: " + violation;
  return out;
}

CoreDriver::CoreDriver(const engine::Engine& engine, std::string type_name, base::Logger& log)
    : engine_(engine), entry_(engine.catalog().FindResource(type_name)), log_(log) {
  if (entry_ == nullptr) {
    fmt::print(stderr, "core_driver: the provider has no resource {}\n", type_name);
    std::abort();
  }
}

cty::Value CoreDriver::Config(cty::Value::Members attributes) const {
  cty::Value config = engine::EmptyObject(entry_->schema);
  for (auto& [name, value] : attributes) config = config.With(name, std::move(value));
  return config;
}

// What the other side of the wire sees.
cty::Value CoreDriver::OverTheWire(const cty::Value& value,
                                   std::vector<std::string>& violations) const {
  const auto bytes = cty::EncodeMsgpack(value, entry_->type);
  if (!bytes) {
    violations.push_back("cannot be encoded: " + bytes.error().message);
    return value;
  }
  const auto back = cty::DecodeMsgpack(*bytes, entry_->type);
  if (!back || *back != value)
    violations.push_back("does not survive the wire: " + value.ToString());
  return back ? *back : value;
}

Diagnostics CoreDriver::Validate(const cty::Value& config) const {
  return engine::ValidateResource(*entry_, config, kCapabilities);
}

engine::PlanResponse CoreDriver::CallPlan(const cty::Value& config, const cty::Value& prior,
                                          const std::string& private_data,
                                          const cty::Value& identity,
                                          std::vector<std::string>& violations) const {
  engine::PlanRequest request;
  request.config = OverTheWire(config, violations);
  request.prior = OverTheWire(prior, violations);
  request.proposed = OverTheWire(ProposeNewState(entry_->schema, prior, config), violations);
  request.prior_private = private_data;
  request.prior_identity = identity;
  request.capabilities = kCapabilities;
  auto response = engine::PlanResource(engine_, {{}, log_}, *entry_, request);
  response.planned = OverTheWire(response.planned, violations);
  // Planning must be deterministic.
  const auto again = engine::PlanResource(engine_, {{}, log_}, *entry_, request);
  if (again.planned != response.planned || again.planned_private != response.planned_private) {
    violations.push_back("a second plan of the same request differs: " + again.planned.ToString());
  }
  return response;
}

CoreDriver::Planned CoreDriver::PlanAll(const cty::Value& config) const {
  Planned planned;
  StepResult& result = planned.result;
  if (!config.IsNull()) result.diagnostics.Append(Validate(config));
  if (result.diagnostics.HasError()) return planned;
  planned.prior = tainted_ && !config.IsNull() ? cty::Value::Null() : state_;
  const bool fresh = planned.prior.IsNull();
  auto response = CallPlan(config, planned.prior, fresh ? "" : private_,
                           fresh ? cty::Value::Null() : identity_, result.violations);
  result.diagnostics.Append(response.diagnostics);
  result.planned = response.planned;
  result.requires_replace = response.requires_replace;
  planned.private_data = response.planned_private;
  planned.identity = response.planned_identity;
  if (result.diagnostics.HasError()) return planned;
  Append(result.violations, "plan",
         engine::CheckPlanned(entry_->schema, config, planned.prior, result.planned));

  bool replace = false;
  for (const auto& path : result.requires_replace) {
    if (!planned.prior.At(path) && !result.planned.At(path)) {
      result.violations.push_back("plan: requires replacement for a path that does not exist: " +
                                  path.ToString());
    }
    replace = replace ||
              (!fresh && CountsForReplace(entry_->schema, path, planned.prior, result.planned));
  }
  if (config.IsNull()) {
    result.action = PlannedAction::kDelete;
  } else if (fresh) {
    result.action = tainted_ ? PlannedAction::kReplace : PlannedAction::kCreate;
    planned.delete_private = planned.private_data;  // the host has no other plan to take it from
  } else if (replace) {
    result.action = PlannedAction::kReplace;
    const auto second = CallPlan(config, cty::Value::Null(), planned.private_data, planned.identity,
                                 result.violations);
    result.diagnostics.Append(second.diagnostics);
    result.planned = second.planned;
    planned.prior = cty::Value::Null();
    planned.delete_private = second.planned_private;
    planned.identity = cty::Value::Null();
    Append(result.violations, "plan of the new object",
           engine::CheckPlanned(entry_->schema, config, cty::Value::Null(), second.planned));
  } else {
    result.action = result.planned == planned.prior ? PlannedAction::kNoOp : PlannedAction::kUpdate;
  }
  return planned;
}

StepResult CoreDriver::Plan(const cty::Value& config) const { return PlanAll(config).result; }

// The second plan, at apply: same action, every known value again.
void CoreDriver::Replan(const cty::Value& config, Planned& planned) const {
  StepResult& result = planned.result;
  result.diagnostics.Append(Validate(config));
  if (result.diagnostics.HasError()) return;
  const bool fresh = planned.prior.IsNull();
  auto response = CallPlan(config, planned.prior, fresh ? "" : private_,
                           fresh ? cty::Value::Null() : identity_, result.violations);
  result.diagnostics.Append(response.diagnostics);
  if (result.diagnostics.HasError()) return;
  Append(result.violations, "plan at apply",
         engine::CheckPlanned(entry_->schema, config, planned.prior, response.planned));
  Append(result.violations, "inconsistent final plan",
         engine::CheckApplied(entry_->schema, result.planned, response.planned, true));
  for (const auto& path : response.requires_replace) {
    const bool counts =
        !fresh && CountsForReplace(entry_->schema, path, planned.prior, response.planned);
    if (counts)
      result.violations.push_back("inconsistent final plan: changed the action to replace: " +
                                  path.ToString());
  }
  result.planned = response.planned;
  planned.private_data = response.planned_private;
  planned.identity = response.planned_identity;
}

void CoreDriver::ApplyOne(const cty::Value& config, const cty::Value& prior,
                          const cty::Value& planned, const std::string& private_data,
                          const cty::Value& identity, StepResult& result) {
  engine::ApplyRequest request{config, prior, planned, private_data, identity};
  auto response = engine::ApplyResource(engine_, {{}, log_}, *entry_, request);
  const bool failed = response.diagnostics.HasError();
  result.diagnostics.Append(response.diagnostics);
  response.state = OverTheWire(response.state, result.violations);
  if (!response.state.IsWhollyKnown())
    result.violations.push_back("apply: state is not wholly known");
  if (response.state != engine::Shape(entry_->schema, response.state)) {
    result.violations.push_back("apply: write-only value or null blocks in the state");
  }
  if (!failed)
    Append(result.violations, "apply",
           engine::CheckApplied(entry_->schema, planned, response.state));
  if (failed && response.state.IsNull())
    return;  // create: nothing was made; update, delete: the prior object is kept
  state_ = response.state;
  private_ = response.private_data;
  identity_ = response.identity;
  if (prior.IsNull()) tainted_ = failed;
  if (state_.IsNull()) {
    private_.clear();
    identity_ = cty::Value::Null();
    tainted_ = false;
  }
}

StepResult CoreDriver::Apply(const cty::Value& config,
                             const std::optional<cty::Value>& config_at_apply) {
  Planned planned = PlanAll(config);
  StepResult& result = planned.result;
  if (!result.Ok() || result.action == PlannedAction::kNoOp) return std::move(result);
  if (result.action == PlannedAction::kDelete) {
    ApplyOne(cty::Value::Null(), state_, cty::Value::Null(), planned.private_data, planned.identity,
             result);
    return std::move(result);
  }
  if (result.action == PlannedAction::kReplace) {
    ApplyOne(cty::Value::Null(), state_, cty::Value::Null(), planned.delete_private, identity_,
             result);
    if (!result.Ok()) return std::move(result);
  }
  const cty::Value& known = config_at_apply ? *config_at_apply : config;
  if (!known.IsWhollyKnown()) {
    result.violations.push_back("test: the configuration at apply must be wholly known");
    return std::move(result);
  }
  Replan(known, planned);
  if (!result.Ok()) return std::move(result);
  ApplyOne(known, planned.prior, result.planned, planned.private_data, planned.identity, result);
  Store(result);
  return std::move(result);
}

// Into the state file and back.
void CoreDriver::Store(StepResult& result) {
  if (state_.IsNull()) return;
  const auto json = cty::EncodeJson(state_, entry_->type);
  if (!json) {
    result.violations.push_back("state cannot be stored: " + json.error().message);
    return;
  }
  const auto upgraded =
      engine::UpgradeState(engine_, {{}, log_}, *entry_, {entry_->schema.version, *json});
  result.diagnostics.Append(upgraded.diagnostics);
  if (upgraded.state != state_)
    result.violations.push_back("state changes when it is stored and read: " + *json);
}

StepResult CoreDriver::Refresh() {
  StepResult result;
  if (state_.IsNull()) return result;
  Store(result);
  auto response = engine::ReadResource(engine_, {{}, log_}, *entry_, {state_, private_, identity_});
  result.diagnostics.Append(response.diagnostics);
  if (!response.state.IsWhollyKnown())
    result.violations.push_back("read: state is not wholly known");
  response.state = OverTheWire(response.state, result.violations);
  if (response.state != engine::Shape(entry_->schema, response.state)) {
    result.violations.push_back("read: write-only value or null blocks in the state");
  }
  if (!result.Ok()) return result;
  state_ = response.state;
  private_ = response.private_data;
  identity_ = response.identity;
  if (state_.IsNull()) tainted_ = false;
  return result;
}

StepResult CoreDriver::Import(const std::string& id) {
  StepResult result;
  auto imported = engine::ImportResource(engine_, {{}, log_}, *entry_, {id, cty::Value::Null()});
  result.diagnostics.Append(imported.diagnostics);
  if (result.diagnostics.HasError()) return result;
  state_ = OverTheWire(imported.state, result.violations);
  private_ = imported.private_data;
  identity_ = imported.identity;
  tainted_ = false;
  auto read = Refresh();
  result.diagnostics.Append(read.diagnostics);
  Append(result.violations, "read after import", read.violations);
  if (result.Ok() && state_.IsNull()) {
    result.diagnostics.AddError("Cannot import non-existent remote object",
                                "Read found no object.");
  }
  return result;
}

}  // namespace sless::framework::testing
