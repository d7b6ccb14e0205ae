#include "provider/framework/engine/call.h"

#include <fmt/format.h>

#include "provider/framework/engine/guard.h"

namespace sless::framework::engine {
namespace {

const Parameter* ParameterAt(const FunctionEntry& entry, size_t index) {
  const auto& definition = entry.definition;
  if (index < definition.parameters.size()) return &definition.parameters[index];
  return definition.variadic ? &*definition.variadic : nullptr;
}

FunctionResponse Failed(std::string text, std::optional<int64_t> argument = std::nullopt) {
  return {cty::Value::Null(), FunctionError{std::move(text), argument}};
}

std::optional<FunctionResponse> CheckArguments(const FunctionEntry& entry,
                                               const std::vector<cty::Value>& arguments) {
  const size_t fixed = entry.definition.parameters.size();
  if (arguments.size() < fixed || (arguments.size() > fixed && !entry.definition.variadic)) {
    return Failed(
        fmt::format("{} takes {} arguments, got {}", entry.name, fixed, arguments.size()));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Parameter& parameter = *ParameterAt(entry, i);
    const auto index = static_cast<int64_t>(i);
    if (arguments[i].IsNull() && !parameter.allow_null) {
      return Failed(fmt::format("argument {} must not be null", parameter.name), index);
    }
    if (!arguments[i].IsWhollyKnown() && !parameter.allow_unknown) {
      return Failed(fmt::format("argument {} must be known", parameter.name), index);
    }
  }
  return std::nullopt;
}

}  // namespace

const cty::Type* ArgumentType(const FunctionEntry& entry, size_t index) {
  const Parameter* parameter = ParameterAt(entry, index);
  return parameter == nullptr ? nullptr : &parameter->type;
}

FunctionResponse CallFunction(const FunctionEntry& entry,
                              const std::vector<cty::Value>& arguments) {
  if (auto failed = CheckArguments(entry, arguments)) return *failed;
  FunctionResponse response;
  Diagnostics diagnostics;
  Guard(fmt::format("Function {}", entry.name), diagnostics,
        [&] { entry.function->Call(arguments, response); });
  if (diagnostics.HasError()) return Failed(diagnostics.items().front().detail);
  if (response.error) return {cty::Value::Null(), std::move(response.error)};
  if (const auto fits = cty::Conforms(response.result, entry.definition.result); !fits) {
    return Failed(fmt::format(
        "{} returned a value that does not fit its result type ({}): a bug of the provider",
        entry.name, fits.error().message));
  }
  return response;
}

EphemeralResult OpenEphemeral(const Engine& engine, const Call& call,
                              const Entry<EphemeralResource>& entry, const cty::Value& config) {
  const Context context = engine.MakeContext(call);
  const PrivateData none;
  EphemeralResponse response;
  response.result = config;
  Guard(fmt::format("Open of {}", entry.type_name), response.diagnostics, [&] {
    entry.object->Open({context, config, none}, response);
  });
  const auto fits = cty::Conforms(response.result, entry.type);
  const bool usable = fits && response.result.IsKnown() && response.result.IsWhollyKnown();
  if (!usable && !response.diagnostics.HasError()) {
    response.diagnostics.AddError(
        "Provider Returned Invalid Data",
        fmt::format("Open of {} returned a value that cannot be used ({}). This is a bug of "
                    "the provider: please report it.",
                    entry.type_name, fits ? "null or not wholly known" : fits.error().message));
  }
  if (!usable) response.result = cty::UnknownsToNull(config);
  return {std::move(response.result), response.renew_at, response.private_data.Encode(),
          std::move(response.diagnostics)};
}

EphemeralResult RenewEphemeral(const Engine& engine, const Call& call,
                               const Entry<EphemeralResource>& entry,
                               std::string_view private_data) {
  const Context context = engine.MakeContext(call);
  const PrivateData held = PrivateData::Decode(private_data);
  const cty::Value config;
  EphemeralResponse response;
  response.private_data = held;
  Guard(fmt::format("Renewal of {}", entry.type_name), response.diagnostics, [&] {
    entry.object->Renew({context, config, held}, response);
  });
  return {cty::Value::Null(), response.renew_at, response.private_data.Encode(),
          std::move(response.diagnostics)};
}

Diagnostics CloseEphemeral(const Engine& engine, const Call& call,
                           const Entry<EphemeralResource>& entry, std::string_view private_data) {
  const Context context = engine.MakeContext(call);
  const PrivateData held = PrivateData::Decode(private_data);
  const cty::Value config;
  Diagnostics diagnostics;
  Guard(fmt::format("Close of {}", entry.type_name), diagnostics, [&] {
    entry.object->Close({context, config, held}, diagnostics);
  });
  return diagnostics;
}

Diagnostics PlanAction(const Engine& engine, const Call& call, const Entry<Action>& entry,
                       const cty::Value& config) {
  const Context context = engine.MakeContext(call);
  Diagnostics diagnostics;
  Guard(fmt::format("Planning {}", entry.type_name), diagnostics, [&] {
    entry.object->Plan({context, config, [](std::string_view) {}}, diagnostics);
  });
  return diagnostics;
}

Diagnostics InvokeAction(const Engine& engine, const Call& call, const Entry<Action>& entry,
                         const cty::Value& config,
                         const std::function<void(std::string_view)>& progress) {
  const Context context = engine.MakeContext(call);
  Diagnostics diagnostics;
  Guard(fmt::format("Action {}", entry.type_name), diagnostics, [&] {
    entry.object->Invoke({context, config, progress}, diagnostics);
  });
  return diagnostics;
}

void ListObjects(const Engine& engine, const Call& call, const Entry<ListResource>& entry,
                 const ResourceEntry& resource, const ListResourceRequest& request,
                 const std::function<bool(ListedObject)>& emit) {
  constexpr int64_t kDefaultLimit = 100;
  const int64_t limit = request.limit > 0 ? request.limit : kDefaultLimit;
  const Context context = engine.MakeContext(call);
  int64_t sent = 0;
  bool ended = false;
  const auto forward = [&](ListedObject object) {
    if (ended || sent >= limit) return false;
    if (!request.include_object) object.object = cty::Value::Null();
    const bool fits = cty::Conforms(object.identity, resource.identity_type) &&
                      object.identity.IsWhollyKnown() &&
                      cty::Conforms(object.object, resource.type) && object.object.IsWhollyKnown();
    if (!fits) {
      object = {};
      object.diagnostics.AddError(
          "Provider Bug", fmt::format("Listing {} gave an object that does not fit the schema. "
                                      "Please report it.",
                                      entry.type_name));
    }
    ++sent;
    const bool failed = object.diagnostics.HasError();
    ended = !emit(std::move(object)) || failed || sent >= limit;
    return !ended;
  };
  Diagnostics diagnostics;
  Guard(fmt::format("Listing {}", entry.type_name), diagnostics, [&] {
    entry.object->List({context, request.config, request.include_object, limit}, forward);
  });
  if (!ended && diagnostics.HasError()) {
    ListedObject last;
    last.diagnostics = std::move(diagnostics);
    emit(std::move(last));
  }
}

}  // namespace sless::framework::engine
