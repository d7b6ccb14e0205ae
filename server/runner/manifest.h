#pragma once

// How the worker of each runtime is started. One more language: one more row here and a folder in
// server/runtimes.

#include <cstdint>
#include <string>
#include <vector>

#include "client/base/result.h"

namespace sless::runner {

struct WorkerFacts {
  std::string runtime;
  std::string interpreter;  ///< path or name
  std::string worker;       ///< path of the worker's file
  std::string code;
  std::string deps;  ///< "" if none
  std::string entrypoint;
  int64_t concurrency = 1;
  int64_t memory_mb = 256;
};

/// The command line. Error: kInvalidArgument for a runtime that is not known.
base::Result<std::vector<std::string>> WorkerCommand(const WorkerFacts& facts);

}  // namespace sless::runner
