#pragma once

// A data source: reads, changes nothing.

#include "provider/framework/resource.h"

namespace sless::framework {

struct DataRequest {
  const Context& context;
  const cty::Value& config;  ///< wholly known
};
struct DataResponse {
  cty::Value state;  ///< the configuration at first; fill the computed attributes
  Diagnostics diagnostics;
};

/// Thread safety: as Resource.
class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual std::string TypeName() const = 0;
  virtual framework::Schema Schema() const = 0;
  virtual void ValidateConfig(const ValidateRequest&, Diagnostics&) const {}
  /// "Not found" is an error. Called in every plan: no side effects.
  virtual void Read(const DataRequest& request, DataResponse& response) const = 0;
};

}  // namespace sless::framework
