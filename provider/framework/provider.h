#pragma once

// A whole provider: its configuration and the list of what it offers.

#include <memory>
#include <string>
#include <vector>

#include "provider/framework/action.h"
#include "provider/framework/data_source.h"
#include "provider/framework/ephemeral.h"
#include "provider/framework/function.h"
#include "provider/framework/list.h"
#include "provider/framework/resource.h"

namespace sless::framework {

struct ConfigureRequest {
  std::stop_token stop;
  base::Logger& log;
  const base::Clock& clock;
  std::string_view terraform_version;
  const cty::Value&
      config;  ///< may have unknowns in a plan: work without them, or report at the first use
  ClientCapabilities capabilities;
};
struct ConfigureResponse {
  ProviderData data;  ///< given to every later call
  Diagnostics diagnostics;
};

/// Thread safety: all methods are const and may be called at the same time. The lists must be cheap
/// (a schema is asked for when it is needed) and give the same types each time; each is asked for
/// once.
class Provider {
 public:
  virtual ~Provider() = default;
  /// Schema of the provider block; empty by default.
  virtual framework::Schema Schema() const { return {}; }
  /// No network; unknown parts pass.
  virtual void ValidateConfig(const ValidateRequest&, Diagnostics&) const {}
  virtual void Configure(const ConfigureRequest& request, ConfigureResponse& response) const = 0;

  virtual std::vector<std::unique_ptr<Resource>> Resources() const { return {}; }
  virtual std::vector<std::unique_ptr<DataSource>> DataSources() const { return {}; }
  virtual std::vector<std::unique_ptr<Function>> Functions() const { return {}; }
  virtual std::vector<std::unique_ptr<EphemeralResource>> EphemeralResources() const { return {}; }
  virtual std::vector<std::unique_ptr<Action>> Actions() const { return {}; }
  virtual std::vector<std::unique_ptr<ListResource>> ListResources() const { return {}; }
};

}  // namespace sless::framework
