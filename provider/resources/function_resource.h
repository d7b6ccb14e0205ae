#pragma once

// sless_function.

#include "provider/framework/resource.h"

namespace sless::resources {

/// A function: code and configuration, built, deployed and kept ready by the server. Create and
/// update wait until the new revision serves; a failure is an error with phase, file:line and the
/// last log lines.
class FunctionResource final : public framework::Resource {
 public:
  std::string TypeName() const override { return "sless_function"; }
  framework::Schema Schema() const override;
  void ValidateConfig(const framework::ValidateRequest& request,
                      framework::Diagnostics& diagnostics) const override;
  void ModifyPlan(const framework::ModifyPlanRequest& request,
                  framework::ModifyPlanResponse& response) const override;
  void Create(const framework::ChangeRequest& request,
              framework::StateResponse& response) const override;
  void Read(const framework::ReadRequest& request,
            framework::StateResponse& response) const override;
  void Update(const framework::ChangeRequest& request,
              framework::StateResponse& response) const override;
  void Delete(const framework::ChangeRequest& request,
              framework::StateResponse& response) const override;
  void ImportState(const framework::ImportRequest& request,
                   framework::StateResponse& response) const override;
};

}  // namespace sless::resources
