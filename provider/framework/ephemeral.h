#pragma once

// An ephemeral resource: a value that is never stored (a token, say), opened in each walk.

#include <optional>

#include "provider/framework/resource.h"

namespace sless::framework {

struct EphemeralRequest {
  const Context& context;
  const cty::Value& config;  ///< wholly known; null for Renew and Close
  const PrivateData& private_data;
};
struct EphemeralResponse {
  cty::Value result;  ///< Open: the configuration at first; fill the computed attributes
  std::optional<base::TimePoint> renew_at;  ///< well before the value expires; never in the past
  PrivateData private_data;                 ///< Renew: that of the request at first
  Diagnostics diagnostics;
};

/// Thread safety: as Resource.
class EphemeralResource {
 public:
  virtual ~EphemeralResource() = default;
  virtual std::string TypeName() const = 0;
  virtual framework::Schema Schema() const = 0;
  virtual void ValidateConfig(const ValidateRequest&, Diagnostics&) const {}
  virtual void Open(const EphemeralRequest& request, EphemeralResponse& response) const = 0;
  virtual void Renew(const EphemeralRequest&, EphemeralResponse&) const {}
  virtual void Close(const EphemeralRequest&, Diagnostics&) const {}
};

}  // namespace sless::framework
