#pragma once

// A managed resource: a small core, and capabilities that are there by overriding.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "provider/framework/context.h"
#include "provider/framework/private_data.h"
#include "provider/framework/schema.h"

namespace sless::framework {

/// Create, Update, Delete. Read the user's input from `plan` (it has the defaults), write-only
/// values from `config`.
struct ChangeRequest {
  const Context& context;
  const cty::Value& config;  ///< null for Delete
  const cty::Value& plan;    ///< null for Delete; computed values may be unknown
  const cty::Value& prior;   ///< null for Create
};

struct ReadRequest {
  const Context& context;
  const cty::Value& state;  ///< after an import only what ImportState gave
};

/// The answer of a call that makes or changes state; the engine fills it beforehand (see each
/// call).
struct StateResponse {
  cty::Value state;
  PrivateData private_data;
  cty::Value identity;  ///< null where the resource has no identity schema
  Diagnostics diagnostics;
};

struct ModifyPlanRequest {
  const Context& context;
  const cty::Value& config;  ///< null for a destroy
  const cty::Value& prior;   ///< null for a create, and in the second plan of a replacement
  ClientCapabilities capabilities;
};
struct ModifyPlanResponse {
  cty::Value plan;  ///< in: after defaults, unknowns and attribute modifiers; null for a destroy,
                    ///< and stays null
  std::vector<cty::Path> requires_replace;
  PrivateData private_data;
  cty::Value identity;
  Diagnostics diagnostics;
};

struct ValidateRequest {
  const cty::Value& config;  ///< may have unknowns
};

struct ImportRequest {
  const Context& context;
  std::string_view id;         ///< "" when imported by identity
  const cty::Value& identity;  ///< null when imported by id
};

/// Brings a state of an old schema version to the current one.
struct StateUpgrader {
  int64_t from_version = 0;
  std::optional<cty::Type> old_type;  ///< none: the old value is plain JSON (objects and tuples)
  std::function<void(const Context&, const cty::Value& old_state, StateResponse&)> upgrade;
};

struct MoveRequest {
  const Context& context;
  std::string_view source_provider;  ///< "host/namespace/type"
  std::string_view source_type;
  int64_t source_version = 0;
  const cty::Value& source_state;  ///< plain JSON (objects and tuples)
};

/// Thread safety: all methods are const and are called for many instances at the same time. No
/// state between calls: plan and apply may run in different processes. Exceptions are caught by the
/// engine and reported as a bug of the provider.
class Resource {
 public:
  virtual ~Resource() = default;

  /// "sless_function".
  virtual std::string TypeName() const = 0;
  virtual framework::Schema Schema() const = 0;

  /// response.state is null at first; set it as soon as the object exists. With an error beside a
  /// state the host keeps the object as tainted; unknown parts then become null.
  virtual void Create(const ChangeRequest& request, StateResponse& response) const = 0;
  /// response.state is request.state at first; null it where the object is gone.
  virtual void Read(const ReadRequest& request, StateResponse& response) const = 0;
  /// response.state is request.prior at first; set it to what is true at the server, also beside an
  /// error.
  virtual void Update(const ChangeRequest& request, StateResponse& response) const = 0;
  /// response.state is request.prior at first; without error it becomes null by itself. Already
  /// gone is success.
  virtual void Delete(const ChangeRequest& request, StateResponse& response) const = 0;

  /// Rules over the whole configuration. No I/O; unknown parts pass.
  virtual void ValidateConfig(const ValidateRequest&, Diagnostics&) const {}
  /// The last word on a plan, also for a destroy. Deterministic; obey: configured values stay as
  /// they are.
  virtual void ModifyPlan(const ModifyPlanRequest&, ModifyPlanResponse&) const {}
  /// response.state is an object of nulls at first: set what Read needs.
  virtual void ImportState(const ImportRequest&, StateResponse& response) const;
  virtual std::vector<StateUpgrader> StateUpgraders() const { return {}; }
  /// response.state is an object of nulls at first.
  virtual void MoveState(const MoveRequest&, StateResponse& response) const;
  virtual std::optional<IdentitySchema> Identity() const { return std::nullopt; }
};

}  // namespace sless::framework
