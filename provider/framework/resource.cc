#include "provider/framework/resource.h"

#include <fmt/format.h>

namespace sless::framework {

void Resource::ImportState(const ImportRequest&, StateResponse& response) const {
  response.diagnostics.AddError("Resource Import Not Implemented",
                                fmt::format("{} does not support import.", TypeName()));
}

void Resource::MoveState(const MoveRequest& request, StateResponse& response) const {
  response.diagnostics.AddError("Unable to Move Resource State",
                                fmt::format("{} cannot take over the state of {} ({}).", TypeName(),
                                            request.source_type, request.source_provider));
}

}  // namespace sless::framework
