#include "provider/framework/engine/read.h"

#include <fmt/format.h>

#include "provider/framework/engine/guard.h"
#include "provider/framework/engine/result.h"

namespace sless::framework::engine {

ReadResourceResponse ReadResource(const Engine& engine, const Call& call,
                                  const ResourceEntry& entry, ReadResourceRequest request) {
  const Context context = engine.MakeContext(call);
  const std::string what = fmt::format("Read of {}", entry.type_name);
  StateResponse response{
      request.state, PrivateData::Decode(request.private_data), request.identity, {}};
  Guard(what, response.diagnostics, [&] {
    entry.object->Read({context, request.state}, response);
  });
  Usable(entry, what, request.state, request.state, response);
  const bool gone = response.state.IsNull();
  const bool changed = !request.identity.IsNull() && !(response.identity == request.identity);
  if (entry.identity && changed && !gone && !response.diagnostics.HasError()) {
    response.diagnostics.AddError(
        "Unexpected Identity Change",
        fmt::format("{} changed the object's identity. This is a bug of the provider: please "
                    "report it.",
                    what));
  }
  return {std::move(response.state), response.private_data.Encode(), std::move(response.identity),
          std::move(response.diagnostics)};
}

ReadDataResponse ReadData(const Engine& engine, const Call& call, const Entry<DataSource>& entry,
                          const cty::Value& config) {
  const Context context = engine.MakeContext(call);
  const std::string what = fmt::format("Read of {}", entry.type_name);
  DataResponse response{config, {}};
  Guard(what, response.diagnostics, [&] { entry.object->Read({context, config}, response); });
  if (response.diagnostics.HasError())
    return {cty::UnknownsToNull(config), std::move(response.diagnostics)};
  const auto fits = cty::Conforms(response.state, entry.type);
  if (!fits || response.state.IsNull() || !response.state.IsWhollyKnown()) {
    response.diagnostics.AddError(
        "Provider Returned Invalid Data",
        fmt::format("{} returned a value that cannot be used ({}). This is a bug of the "
                    "provider: please report it.",
                    what, fits ? "null or not wholly known" : fits.error().message));
    response.state = cty::UnknownsToNull(config);
  }
  return {std::move(response.state), std::move(response.diagnostics)};
}

}  // namespace sless::framework::engine
