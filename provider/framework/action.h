#pragma once

// An action: does something once, keeps no state.

#include <functional>

#include "provider/framework/resource.h"

namespace sless::framework {

struct ActionRequest {
  const Context& context;
  const cty::Value& config;  ///< may have unknowns in Plan
  /// Shows a line of progress to the user. Invoke only.
  std::function<void(std::string_view)> progress;
};

/// Thread safety: as Resource.
class Action {
 public:
  virtual ~Action() = default;
  virtual std::string TypeName() const = 0;
  virtual framework::Schema Schema() const = 0;
  virtual void ValidateConfig(const ValidateRequest&, Diagnostics&) const {}
  virtual void Plan(const ActionRequest&, Diagnostics&) const {}
  virtual void Invoke(const ActionRequest& request, Diagnostics& diagnostics) const = 0;
};

}  // namespace sless::framework
