#pragma once

// Plays Terraform's side of one resource instance over the engine: proposes, plans, plans again,
// applies, reads, imports, and checks every answer by the host's rules. Values go through
// MessagePack and state through JSON, as they do in life.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "provider/framework/engine/engine.h"
#include "provider/framework/engine/plan.h"

namespace sless::framework::testing {

/// The host's merge of configuration and prior state (proposed new state).
cty::Value ProposeNewState(const Schema& schema, const cty::Value& prior, const cty::Value& config);

/// What a plan or an apply came to.
enum class PlannedAction { kNoOp, kCreate, kUpdate, kReplace, kDelete };
std::string ToString(PlannedAction action);

/// The outcome of one step. `violations` are breaches of the host's rules (bugs of the provider);
/// diagnostics are what the provider said.
struct StepResult {
  PlannedAction action = PlannedAction::kNoOp;
  cty::Value planned;
  std::vector<cty::Path> requires_replace;
  Diagnostics diagnostics;
  std::vector<std::string> violations;

  bool Ok() const { return violations.empty() && !diagnostics.HasError(); }
  /// Both lists as text, for messages of tests.
  std::string Problems() const;
};

/// One instance of one resource type. Not thread-safe.
class CoreDriver {
 public:
  /// The engine must have been configured and outlives the driver.
  CoreDriver(const engine::Engine& engine, std::string type_name, base::Logger& log);

  /// `terraform validate` of this configuration.
  Diagnostics Validate(const cty::Value& config) const;
  /// A plan of this configuration against the state as it is (no refresh). Null configuration:
  /// destroy.
  StepResult Plan(const cty::Value& config) const;
  /// Plan, then apply: with the configuration as it was known at plan, and as it is known at apply
  /// (by default the same). State is kept as the host would keep it, also after errors.
  StepResult Apply(const cty::Value& config,
                   const std::optional<cty::Value>& config_at_apply = std::nullopt);
  StepResult Destroy() { return Apply(cty::Value::Null()); }
  /// Upgrade and read of the stored state.
  StepResult Refresh();
  /// Import by id, then read.
  StepResult Import(const std::string& id);

  const cty::Value& state() const { return state_; }
  bool tainted() const { return tainted_; }
  const std::string& private_data() const { return private_; }
  const cty::Value& identity() const { return identity_; }
  /// Drift: somebody changed the object behind the provider's back.
  void SetState(cty::Value state) { state_ = std::move(state); }
  /// An object with these attributes, the others null, blocks empty: a configuration.
  cty::Value Config(cty::Value::Members attributes) const;

 private:
  struct Planned {
    StepResult result;
    cty::Value prior;
    std::string private_data;
    std::string delete_private;  // for the delete half of a replacement
    cty::Value identity;
  };
  cty::Value OverTheWire(const cty::Value& value, std::vector<std::string>& violations) const;
  engine::PlanResponse CallPlan(const cty::Value& config, const cty::Value& prior,
                                const std::string& private_data, const cty::Value& identity,
                                std::vector<std::string>& violations) const;
  Planned PlanAll(const cty::Value& config) const;
  void Replan(const cty::Value& config, Planned& planned) const;
  void ApplyOne(const cty::Value& config, const cty::Value& prior, const cty::Value& planned,
                const std::string& private_data, const cty::Value& identity, StepResult& result);
  void Store(StepResult& result);

  const engine::Engine& engine_;
  const engine::ResourceEntry* entry_;
  base::Logger& log_;
  cty::Value state_;
  std::string private_;
  cty::Value identity_;
  bool tainted_ = false;
};

}  // namespace sless::framework::testing
