#pragma once

// Functions, ephemeral resources, actions, list resources.

#include <functional>
#include <optional>
#include <string>

#include "provider/framework/engine/engine.h"

namespace sless::framework::engine {

/// `arguments` are decoded with ArgumentType. A null for a parameter that does not allow it, a
/// wrong count and a result that does not fit are errors.
FunctionResponse CallFunction(const FunctionEntry& entry, const std::vector<cty::Value>& arguments);
/// Type of argument `index`, also past the fixed parameters where there is a variadic one; nullptr:
/// too many arguments.
const cty::Type* ArgumentType(const FunctionEntry& entry, size_t index);

struct EphemeralResult {
  cty::Value result;  ///< Open only
  std::optional<base::TimePoint> renew_at;
  std::string private_data;
  Diagnostics diagnostics;
};
EphemeralResult OpenEphemeral(const Engine& engine, const Call& call,
                              const Entry<EphemeralResource>& entry, const cty::Value& config);
EphemeralResult RenewEphemeral(const Engine& engine, const Call& call,
                               const Entry<EphemeralResource>& entry,
                               std::string_view private_data);
Diagnostics CloseEphemeral(const Engine& engine, const Call& call,
                           const Entry<EphemeralResource>& entry, std::string_view private_data);

Diagnostics PlanAction(const Engine& engine, const Call& call, const Entry<Action>& entry,
                       const cty::Value& config);
/// Returns what goes into the one `completed` event; `progress` is called before that, from this
/// thread.
Diagnostics InvokeAction(const Engine& engine, const Call& call, const Entry<Action>& entry,
                         const cty::Value& config,
                         const std::function<void(std::string_view)>& progress);

struct ListResourceRequest {
  cty::Value config;
  bool include_object = false;
  int64_t limit = 0;  ///< 0 or less: 100
};
/// Calls `emit` for each object until it returns false or the limit is reached. A failure becomes
/// one last event with an error. `resource` is the managed resource of the same name.
void ListObjects(const Engine& engine, const Call& call, const Entry<ListResource>& entry,
                 const ResourceEntry& resource, const ListResourceRequest& request,
                 const std::function<bool(ListedObject)>& emit);

}  // namespace sless::framework::engine
