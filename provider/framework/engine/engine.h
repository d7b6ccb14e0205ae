#pragma once

// The provider in the form that the families of RPCs work on: one per process.

#include <memory>

#include "client/base/guarded.h"
#include "provider/framework/engine/catalog.h"

namespace sless::framework::engine {

/// What the transport knows about one call.
struct Call {
  std::stop_token stop;
  base::Logger& log;
};

/// Thread safety: all methods may be called at the same time from any thread.
class Engine {
 public:
  Engine(std::unique_ptr<Provider> provider, const base::Clock& clock);

  const Catalog& catalog() const { return catalog_; }
  const Provider& provider() const { return *provider_; }
  const base::Clock& clock() const { return clock_; }

  /// ConfigureProvider: later calls see its data. A second call replaces it.
  Diagnostics Configure(const Call& call, std::string_view terraform_version,
                        const cty::Value& config, ClientCapabilities capabilities);
  /// The context of a call into the provider's objects.
  Context MakeContext(const Call& call) const;

 private:
  struct Configured {
    ProviderData data;
    std::string terraform_version;
  };
  std::unique_ptr<Provider> provider_;
  const base::Clock& clock_;
  Catalog catalog_;
  base::Guarded<Configured> configured_;
};

/// The diagnostic for a type name that the provider does not have. `kind` is "resource", "data
/// source", ….
Diagnostic UnknownType(std::string_view kind, std::string_view type_name,
                       const std::vector<std::string>& known);

}  // namespace sless::framework::engine
