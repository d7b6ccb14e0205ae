#pragma once

// THE LIST of API kinds. One line here gives a kind its REST routes and its part of the OpenAPI
// document.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/result.h"
#include "server/store/object_store.h"

namespace sless::handlers {

/// What the generic object handlers need to know of a kind.
struct Kind {
  std::string_view name;    ///< "Function"
  std::string_view plural;  ///< "functions", in paths
  std::vector<std::string_view> final_phases;
  /// Spec of a request body, checked and in canonical form. Error: kInvalidArgument with field.
  std::function<base::Result<std::string>(const nlohmann::json& spec)> read_spec;
  /// Status of a new object.
  std::function<std::string()> new_status;
  /// The JSON form of a stored object.
  std::function<base::Result<nlohmann::json>(const store::StoredObject&)> write;
  /// True if both spec texts mean the same.
  std::function<bool(const std::string& a, const std::string& b)> same_spec;
  /// What may not change.
  std::function<base::Status(const store::StoredObject& before, const std::string& spec)>
      check_update;
  /// Hash of code that must have been uploaded, "" for none.
  std::function<std::string(const std::string& spec)> needs_code;
  /// Error: kFailedPrecondition, reason "HashMismatch", where code that the spec holds itself has
  /// another hash than the spec says.
  std::function<base::Status(const std::string& spec)> check_inline_code;
  /// The schemas of the object for OpenAPI: as it is read, written by PUT, changed by PATCH.
  std::function<nlohmann::json()> schema, input_schema, patch_schema;
};

const std::vector<Kind>& Kinds();

}  // namespace sless::handlers
