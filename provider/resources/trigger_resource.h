#pragma once

// sless_trigger.

#include "client/api/trigger.h"
#include "provider/framework/resource.h"

namespace sless::resources {

/// What starts a function: HTTP requests at a public URL, or a schedule.
class TriggerResource final : public framework::Resource {
 public:
  std::string TypeName() const override { return "sless_trigger"; }
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

/// The spec that a plan asks for; all of it must be known.
api::TriggerSpec TriggerSpecOf(const cty::Value& plan);
/// What the server says; in `like` empty texts and sets keep their spelling.
cty::Value TriggerStateOf(const api::Trigger& trigger, const cty::Value& like);

}  // namespace sless::resources
