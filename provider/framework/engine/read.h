#pragma once

// ReadResource and ReadDataSource.

#include <string>

#include "provider/framework/engine/engine.h"

namespace sless::framework::engine {

struct ReadResourceRequest {
  cty::Value state;
  std::string private_data;
  cty::Value identity;
};
struct ReadResourceResponse {
  cty::Value state;  ///< null: the object is gone
  std::string private_data;
  cty::Value identity;
  Diagnostics diagnostics;
};
ReadResourceResponse ReadResource(const Engine& engine, const Call& call,
                                  const ResourceEntry& entry, ReadResourceRequest request);

struct ReadDataResponse {
  cty::Value state;
  Diagnostics diagnostics;
};
ReadDataResponse ReadData(const Engine& engine, const Call& call, const Entry<DataSource>& entry,
                          const cty::Value& config);

}  // namespace sless::framework::engine
