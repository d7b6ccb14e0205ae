#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/base/result.h"

namespace sless::runner {

/// What a worker says of an exception, as the frames "error" and "init_error" carry it
/// (docs/runner.md).
struct WorkerError {
  base::SourceInfo source;
  std::string message;             ///< "Type: text"
  std::vector<std::string> trace;  ///< at most 200 lines
};

/// Reads the member "error" of a frame's head. Whatever is missing or of another type is left
/// empty: a worker's word is not to be trusted.
WorkerError ReadWorkerError(const nlohmann::json& head);

/// A member of a frame's head, "" or 0 where there is none of that type.
std::string TextOf(const nlohmann::json& object, const char* name);
int64_t IntOf(const nlohmann::json& object, const char* name);

}  // namespace sless::runner
