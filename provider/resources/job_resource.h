#pragma once

// sless_job.

#include "client/api/job.h"
#include "provider/framework/resource.h"

namespace sless::resources {

/// One run of a function at apply: run_id 0 runs nothing, a raised run_id runs once and is waited
/// for. A failed run fails the apply, and the next apply starts one more attempt under the same
/// run_id. Reading never runs anything.
///
/// A create that ends in an error leaves the job in state as tainted, and the host then replaces
/// it: delete, create. Deleting would end a run that goes on at the server, forget its attempts, or
/// run again what has succeeded since. So the delete of such a replacement leaves the job of the
/// same name where it is, and the create takes it over. The plan tells the two deletes apart: see
/// ModifyPlan.
class JobResource final : public framework::Resource {
 public:
  std::string TypeName() const override { return "sless_job"; }
  framework::Schema Schema() const override;
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
api::JobSpec JobSpecOf(const cty::Value& plan);
/// What the server says; what is empty there is null here.
cty::Value JobStateOf(const api::Job& job);

}  // namespace sless::resources
