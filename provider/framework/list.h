#pragma once

// A list resource: finds existing objects of a managed resource that has an identity schema
// (`terraform query`).

#include <functional>
#include <optional>

#include "provider/framework/resource.h"

namespace sless::framework {

struct ListedObject {
  cty::Value identity;
  std::string display_name;
  cty::Value object;  ///< null unless asked for
  Diagnostics diagnostics;
};
struct ListRequest {
  const Context& context;
  const cty::Value& config;
  bool include_object = false;
  int64_t limit = 0;  ///< above 0; the engine ends the stream there
};

/// Thread safety: as Resource.
class ListResource {
 public:
  virtual ~ListResource() = default;
  /// The managed resource's type name.
  virtual std::string TypeName() const = 0;
  /// Schema of the config block.
  virtual framework::Schema Schema() const = 0;
  virtual void ValidateConfig(const ValidateRequest&, Diagnostics&) const {}
  /// Calls emit for each object until it returns false.
  virtual void List(const ListRequest& request,
                    const std::function<bool(ListedObject)>& emit) const = 0;
};

}  // namespace sless::framework
