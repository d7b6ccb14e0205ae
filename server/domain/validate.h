#pragma once

// What a request may ask for. Pure: no I/O but the machine's time zone files, no clock, no locks.
//
// Every check gives kInvalidArgument with Error.field as a JSON pointer into the object
// ("/spec/memoryMb"), which becomes the attribute path in Terraform. Bounds, allowed words and
// rules come from client/api. No message holds an environment value.

#include "client/api/function.h"
#include "client/api/job.h"
#include "client/api/trigger.h"
#include "client/base/result.h"

namespace sless::domain {

/// Namespace and name are DNS labels; annotations are few and small.
base::Status ValidateMetadata(const api::Metadata& metadata);

base::Status ValidateFunction(const api::FunctionSpec& spec);
/// Also kFailedPrecondition, where this machine has no time zone files: install tzdata.
base::Status ValidateTrigger(const api::TriggerSpec& spec);
base::Status ValidateJob(const api::JobSpec& spec);

/// What may not change. Error: kFailedPrecondition.
/// A trigger keeps its type. (A function may change everywhere.)
base::Status ValidateTriggerUpdate(const api::TriggerSpec& before, const api::TriggerSpec& after);
/// runId is 0 or not below the last run's: the message names that run.
base::Status ValidateJobUpdate(const api::JobStatus& status, const api::JobSpec& after);

}  // namespace sless::domain
