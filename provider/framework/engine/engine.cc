#include "provider/framework/engine/engine.h"

#include <fmt/format.h>

#include "client/base/strings.h"
#include "provider/framework/engine/guard.h"

namespace sless::framework::engine {

Engine::Engine(std::unique_ptr<Provider> provider, const base::Clock& clock)
    : provider_(std::move(provider)), clock_(clock), catalog_(*provider_) {}

Diagnostics Engine::Configure(const Call& call, std::string_view terraform_version,
                              const cty::Value& config, ClientCapabilities capabilities) {
  ConfigureResponse response;
  const ConfigureRequest request{call.stop,         call.log, clock_,
                                 terraform_version, config,   capabilities};
  Guard("Configuring the provider", response.diagnostics,
        [&] { provider_->Configure(request, response); });
  if (!response.diagnostics.HasError()) {
    configured_.With([&](Configured& c) {
      c = {std::move(response.data), std::string(terraform_version)};
    });
  }
  return std::move(response.diagnostics);
}

Context Engine::MakeContext(const Call& call) const {
  auto configured = configured_.With([](const Configured& c) { return c; });
  return Context{call.stop, call.log, clock_, std::move(configured.data),
                 std::move(configured.terraform_version)};
}

Diagnostic UnknownType(std::string_view kind, std::string_view type_name,
                       const std::vector<std::string>& known) {
  std::string detail = fmt::format("This provider has no {} \"{}\".", kind, type_name);
  const std::string near = base::Nearest(type_name, known);
  if (!near.empty()) detail += fmt::format(" Did you mean \"{}\"?", near);
  return {Severity::kError, fmt::format("Unknown {}", kind), std::move(detail), std::nullopt};
}

}  // namespace sless::framework::engine
