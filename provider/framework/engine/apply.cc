#include "provider/framework/engine/apply.h"

#include <fmt/format.h>

#include "provider/framework/engine/consistency.h"
#include "provider/framework/engine/guard.h"
#include "provider/framework/engine/result.h"

namespace sless::framework::engine {
namespace {

enum class Action { kCreate, kUpdate, kDelete };

std::string_view Verb(Action action) {
  switch (action) {
    case Action::kCreate:
      return "Create";
    case Action::kUpdate:
      return "Update";
    case Action::kDelete:
      return "Delete";
  }
  return "?";
}

void Dispatch(Action action, const Resource& resource, const ChangeRequest& request,
              StateResponse& response) {
  switch (action) {
    case Action::kCreate:
      return resource.Create(request, response);
    case Action::kUpdate:
      return resource.Update(request, response);
    case Action::kDelete:
      return resource.Delete(request, response);
  }
}

// A result without state and without error would lose the object.
void CheckPresence(const ResourceEntry& entry, Action action, StateResponse& response) {
  if (action == Action::kDelete || !response.state.IsNull() || response.diagnostics.HasError())
    return;
  response.diagnostics.AddError(
      fmt::format("Missing Resource State After {}", Verb(action)),
      fmt::format("{} returned neither a state nor an error; the object may exist without being "
                  "tracked. This is a bug of the provider: please report it.",
                  entry.type_name));
}

void CheckIdentity(const ResourceEntry& entry, Action action, StateResponse& response) {
  if (action == Action::kDelete || response.diagnostics.HasError()) return;
  if (entry.identity && response.identity.IsNull()) {
    response.diagnostics.AddError(
        fmt::format("Missing Resource Identity After {}", Verb(action)),
        fmt::format("{} returned no identity. This is a bug of the provider: please report it.",
                    entry.type_name));
  }
}

}  // namespace

ApplyResponse ApplyResource(const Engine& engine, const Call& call, const ResourceEntry& entry,
                            ApplyRequest request) {
  const Action action = request.prior.IsNull()     ? Action::kCreate
                        : request.planned.IsNull() ? Action::kDelete
                                                   : Action::kUpdate;
  const Context context = engine.MakeContext(call);
  StateResponse response;
  response.state = request.prior;
  response.private_data = PrivateData::Decode(request.planned_private);
  response.identity = request.planned_identity;
  Guard(fmt::format("{} of {}", Verb(action), entry.type_name), response.diagnostics, [&] {
    Dispatch(action, *entry.object, {context, request.config, request.planned, request.prior},
             response);
  });
  if (action == Action::kDelete && !response.diagnostics.HasError())
    response.state = cty::Value::Null();
  CheckPresence(entry, action, response);

  // What to keep if the author's state cannot be used: for a create the plan, since the object may
  // well exist.
  const cty::Value fallback =
      action == Action::kCreate ? cty::UnknownsToNull(request.planned) : request.prior;
  Usable(entry, fmt::format("{} of {}", Verb(action), entry.type_name), request.planned, fallback,
         response);
  CheckIdentity(entry, action, response);
  if (!response.diagnostics.HasError()) {
    for (const auto& problem : CheckApplied(entry.schema, request.planned, response.state)) {
      call.log.Error("result breaks a rule of the host",
                     {{"resource", entry.type_name}, {"problem", problem}});
    }
  }
  return {std::move(response.state), response.private_data.Encode(), std::move(response.identity),
          std::move(response.diagnostics)};
}

}  // namespace sless::framework::engine
