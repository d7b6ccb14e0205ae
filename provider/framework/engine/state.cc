#include "provider/framework/engine/state.h"

#include <fmt/format.h>

#include <algorithm>

#include "provider/cty/wire_json.h"
#include "provider/framework/engine/guard.h"
#include "provider/framework/engine/result.h"
#include "provider/framework/engine/shape.h"

namespace sless::framework::engine {
namespace {

constexpr const char* kUpgradeFailed = "Unable to Upgrade Resource State";

void CallUpgrader(const Engine& engine, const Call& call, const ResourceEntry& entry,
                  const StateUpgrader& upgrader, const UpgradeRequest& request,
                  StateResponse& response) {
  const auto old = upgrader.old_type ? cty::DecodeJson(request.json, *upgrader.old_type,
                                                       {.ignore_extra_attributes = true})
                                     : cty::DecodeAnyJson(request.json);
  if (!old) {
    response.diagnostics.AddError(
        kUpgradeFailed, fmt::format("The stored state of {} (version {}) cannot be read: {}.",
                                    entry.type_name, request.version, old.error().message));
    return;
  }
  const Context context = engine.MakeContext(call);
  Guard(fmt::format("Upgrade of {}", entry.type_name), response.diagnostics,
        [&] { upgrader.upgrade(context, *old, response); });
}

// The state is there, not null and conforms; else an error.
void Finish(const ResourceEntry& entry, std::string_view what, StateResponse& response) {
  if (response.diagnostics.HasError()) {
    response.state = cty::Value::Null();
    return;
  }
  Usable(entry, what, cty::Value::Null(), cty::Value::Null(), response);
  if (response.state.IsNull() && !response.diagnostics.HasError()) {
    response.diagnostics.AddError("Missing Resource State",
                                  fmt::format("{} returned no state. This is a bug of the "
                                              "provider: please report it.",
                                              what));
  }
}

ImportedResource ToImported(StateResponse response) {
  return {std::move(response.state), response.private_data.Encode(), std::move(response.identity),
          std::move(response.diagnostics)};
}

bool AllNull(const cty::Value& state) {
  return std::all_of(state.AsMap().begin(), state.AsMap().end(), [](const auto& member) {
    return member.second.IsNull() ||
           (member.second.kind() >= cty::Value::Kind::kList && member.second.size() == 0);
  });
}

}  // namespace

UpgradeResponse UpgradeState(const Engine& engine, const Call& call, const ResourceEntry& entry,
                             const UpgradeRequest& request) {
  StateResponse response;
  const auto fail = [&](std::string detail) {
    response.diagnostics.AddError(kUpgradeFailed, std::move(detail));
    return UpgradeResponse{cty::Value::Null(), std::move(response.diagnostics)};
  };
  if (request.json.empty()) {
    return fail(
        fmt::format("The stored state of {} is in the form of Terraform 0.11 and older, which this "
                    "provider never wrote.",
                    entry.type_name));
  }
  if (request.version == entry.schema.version) {
    const auto state = cty::DecodeJson(request.json, entry.type, {.ignore_extra_attributes = true});
    if (!state)
      return fail(fmt::format("The stored state of {} cannot be read: {}.", entry.type_name,
                              state.error().message));
    response.state = *state;
  } else {
    const auto upgraders = entry.object->StateUpgraders();
    const auto it = std::find_if(upgraders.begin(), upgraders.end(),
                                 [&](const auto& u) { return u.from_version == request.version; });
    if (it == upgraders.end()) {
      return fail(fmt::format("There is no upgrade of {} from version {} to {}.", entry.type_name,
                              request.version, entry.schema.version));
    }
    CallUpgrader(engine, call, entry, *it, request, response);
  }
  // The identity is not part of this call.
  const auto identity_free = [&] {
    StateResponse state_only{
        std::move(response.state), {}, cty::Value::Null(), std::move(response.diagnostics)};
    state_only.identity =
        entry.identity ? cty::NullObject(entry.identity_type) : cty::Value::Null();
    Finish(entry, fmt::format("Upgrade of {}", entry.type_name), state_only);
    return state_only;
  };
  StateResponse finished = identity_free();
  return {std::move(finished.state), std::move(finished.diagnostics)};
}

UpgradeResponse UpgradeIdentity(const ResourceEntry& entry, const UpgradeRequest& request) {
  UpgradeResponse response;
  const auto fail = [&](std::string detail) {
    response.diagnostics.AddError("Unable to Upgrade Resource Identity", std::move(detail));
    return std::move(response);
  };
  if (!entry.identity) return fail(fmt::format("{} has no identity.", entry.type_name));
  if (request.version > entry.identity->version) {
    return fail(fmt::format("The stored identity of {} has version {}, this provider knows {}.",
                            entry.type_name, request.version, entry.identity->version));
  }
  auto identity =
      cty::DecodeJson(request.json, entry.identity_type, {.ignore_extra_attributes = true});
  if (!identity)
    return fail(fmt::format("The stored identity of {} cannot be read: {}.", entry.type_name,
                            identity.error().message));
  response.state = std::move(*identity);
  return response;
}

ImportedResource ImportResource(const Engine& engine, const Call& call, const ResourceEntry& entry,
                                const ImportStateRequest& request) {
  StateResponse response{EmptyObject(entry.schema), {}, request.identity, {}};
  const std::string what = fmt::format("Import of {}", entry.type_name);
  if (request.id.empty() && request.identity.IsNull()) {
    response.diagnostics.AddError(cty::Path("id"), "Missing Import Identifier",
                                  fmt::format("{} needs an id that is not empty.", what));
  } else {
    const Context context = engine.MakeContext(call);
    Guard(what, response.diagnostics, [&] {
      entry.object->ImportState({context, request.id, request.identity}, response);
    });
  }
  if (!response.diagnostics.HasError() && AllNull(response.state)) {
    response.diagnostics.AddError(
        "Missing Resource Import State",
        fmt::format("{} set no attribute. This is a bug of the provider: please report it.", what));
  }
  Finish(entry, what, response);
  return ToImported(std::move(response));
}

ImportedResource MoveResource(const Engine& engine, const Call& call, const ResourceEntry& entry,
                              const MoveStateRequest& request) {
  StateResponse response{EmptyObject(entry.schema),
                         PrivateData::Decode(request.source_private),
                         cty::Value::Null(),
                         {}};
  const std::string what = fmt::format("Move to {}", entry.type_name);
  const auto source = cty::DecodeAnyJson(request.source_json);
  if (!source) {
    response.diagnostics.AddError("Unable to Move Resource State",
                                  fmt::format("The state of {} cannot be read: {}.",
                                              request.source_type, source.error().message));
  } else {
    const Context context = engine.MakeContext(call);
    Guard(what, response.diagnostics, [&] {
      entry.object->MoveState(
          {context, request.source_provider, request.source_type, request.source_version, *source},
          response);
    });
  }
  Finish(entry, what, response);
  return ToImported(std::move(response));
}

namespace {

bool Writable(const Attribute& attribute) {
  const auto& o = attribute.options;
  return (o.required || o.optional) && !o.sensitive && o.deprecation.empty();
}

cty::Value ConfigOf(const std::vector<Attribute>& attributes, const cty::Value& object);

cty::Value ConfigOf(const Attribute& attribute, const cty::Value& value) {
  if (!Writable(attribute)) return cty::Value::Null();
  if (!attribute.type.nesting || !value.IsKnown()) return value;
  switch (*attribute.type.nesting) {
    case Nesting::kSingle:
      return ConfigOf(attribute.type.attributes, value);
    case Nesting::kMap: {
      cty::Value::Members members;
      for (const auto& [key, item] : value.AsMap())
        members.emplace(key, ConfigOf(attribute.type.attributes, item));
      return cty::Value::Map(std::move(members));
    }
    case Nesting::kList:
    case Nesting::kSet:
      break;
  }
  cty::Value::Elements items;
  for (const auto& item : value.AsList())
    items.push_back(ConfigOf(attribute.type.attributes, item));
  return *attribute.type.nesting == Nesting::kSet ? cty::Value::Set(std::move(items))
                                                  : cty::Value::List(std::move(items));
}

cty::Value ConfigOf(const std::vector<Attribute>& attributes, const cty::Value& object) {
  cty::Value result = object;
  for (const auto& attribute : attributes) {
    cty::Value part = ConfigOf(attribute, object.Get(attribute.name));
    if (!(part == object.Get(attribute.name)))
      result = result.With(attribute.name, std::move(part));
  }
  return result;
}

}  // namespace

cty::Value GenerateConfig(const ResourceEntry& entry, const cty::Value& state) {
  return ConfigOf(entry.schema.attributes, state);
}

}  // namespace sless::framework::engine
