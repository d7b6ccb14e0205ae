#include "provider/framework/engine/result.h"

#include <fmt/format.h>

#include "provider/framework/engine/guard.h"
#include "provider/framework/engine/shape.h"

namespace sless::framework::engine {
namespace {

constexpr const char* kReport = "This is a bug of the provider: please report it.";

void UsableState(const ResourceEntry& entry, std::string_view what, const cty::Value& reference,
                 const cty::Value& fallback, StateResponse& response) {
  cty::Value state = Shape(entry.schema, response.state);
  const auto fits = cty::Conforms(state, entry.type);
  if (!fits || state.IsUnknown()) {
    response.diagnostics.AddError(
        "Provider Returned Invalid State",
        fmt::format("{} returned a state that does not fit the schema ({}). {}", what,
                    fits ? "it is unknown" : fits.error().message, kReport));
    response.state = Shape(entry.schema, fallback);
    return;
  }
  Guard("Comparing values by meaning", response.diagnostics,
        [&] { state = KeepSpelling(entry.schema, reference, state); });
  if (!state.IsWhollyKnown()) {
    const bool failed = response.diagnostics.HasError();
    for (const auto& path : cty::UnknownPaths(state)) {
      if (failed) break;
      response.diagnostics.AddError(
          path, "Provider Returned Unknown Value",
          fmt::format("{} left {} unknown. {}", what, path.ToString(), kReport));
    }
    state = cty::UnknownsToNull(state);
  }
  response.state = std::move(state);
}

void UsableIdentity(const ResourceEntry& entry, std::string_view what, StateResponse& response) {
  if (!entry.identity) {
    response.identity = cty::Value::Null();
    return;
  }
  const auto fits = cty::Conforms(response.identity, entry.identity_type);
  if (fits && response.identity.IsWhollyKnown()) return;
  // After a failure a planned identity that stayed unknown is no news.
  if (!response.diagnostics.HasError()) {
    response.diagnostics.AddError(
        "Provider Returned Invalid Identity",
        fmt::format("{} returned an identity that cannot be stored ({}). {}", what,
                    fits ? "part of it is unknown" : fits.error().message, kReport));
  }
  response.identity = cty::Value::Null();
}

}  // namespace

void Usable(const ResourceEntry& entry, std::string_view what, const cty::Value& reference,
            const cty::Value& fallback, StateResponse& response) {
  UsableState(entry, what, reference, fallback, response);
  UsableIdentity(entry, what, response);
}

}  // namespace sless::framework::engine
