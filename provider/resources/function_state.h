#pragma once

// A function as Terraform sees it, and as the API does.

#include "client/api/function.h"
#include "provider/cty/value.h"
#include "provider/framework/diagnostics.h"

namespace sless::resources {

/// The spec that a plan asks for. All configured values must be known; source_hash may be unknown,
/// then the hash is "".
api::FunctionSpec FunctionSpecOf(const cty::Value& plan);

/// Keeps in an annotation which texts and maps of the plan are empty, and not null: the spec does
/// not tell one from the other.
void KeepEmpty(const cty::Value& plan, api::Metadata& metadata);

/// What the server says, with the timeouts block of `like`, in which empty texts and maps keep
/// their spelling (null or empty); after an import that of KeepEmpty. After a failed update it
/// shows what is serving, so that the difference is seen; where nothing serves, source_hash is "".
cty::Value FunctionStateOf(const api::Function& function, const cty::Value& like);

/// Where the server's fields come from in the configuration.
framework::FieldMap FunctionFields(const api::Source& source);

}  // namespace sless::resources
