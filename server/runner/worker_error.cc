#include "server/runner/worker_error.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "client/base/strings.h"
#include "server/runner/log_writer.h"

namespace sless::runner {

using nlohmann::json;

std::string TextOf(const json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

int64_t IntOf(const json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}

WorkerError ReadWorkerError(const json& head) {
  WorkerError out;
  const auto it = head.find("error");
  if (it == head.end() || !it->is_object()) {
    out.message = "unknown error";
    return out;
  }
  const std::string type = TextOf(*it, "type"), message = TextOf(*it, "message");
  // These two are the workers' own and say all in words.
  const bool bare = type.empty() || type == "EntrypointError" || type == "BadResult";
  out.message = bare ? message : message.empty() ? type : type + ": " + message;
  out.source.file = TextOf(*it, "file");
  out.source.line = static_cast<int>(std::clamp<int64_t>(IntOf(*it, "line"), 0, INT32_MAX));
  if (const auto trace = it->find("trace"); trace != it->end() && trace->is_array()) {
    for (const auto& line : *trace) {
      if (line.is_string() && out.trace.size() < 200)
        out.trace.push_back(base::Truncate(line.get<std::string>(), kMaxLine));
    }
  }
  return out;
}

}  // namespace sless::runner
