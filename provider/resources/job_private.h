#pragma once

// What a job keeps beside its state.

#include <charconv>
#include <string>

#include "provider/framework/private_data.h"

namespace sless::resources {

/// Highest run_id that ever ran, 0 if none is known.
inline int64_t LastRunId(const framework::PrivateData& data) {
  const auto text = data.Get("last_run_id").value_or("0");
  int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}
inline void SetLastRunId(framework::PrivateData& data, int64_t run_id) {
  if (run_id > LastRunId(data)) data.Set("last_run_id", std::to_string(run_id));
}

/// The mark of a change that the user wants, in planned private data: a delete that has it is a
/// real one.
inline void MarkWanted(framework::PrivateData& data) { data.Set("wanted", "true"); }
inline bool IsWanted(const framework::PrivateData& data) { return data.Get("wanted").has_value(); }

/// The mark of a planned create: the id of the job that it makes or takes over.
inline void MarkMakes(framework::PrivateData& data, const std::string& id) {
  data.Set("makes", id);
}
inline bool Makes(const framework::PrivateData& data, const std::string& id) {
  return data.Get("makes") == id;
}

/// Both marks belong to the plan: they are not kept.
inline void ClearMarks(framework::PrivateData& data) {
  data.Remove("wanted");
  data.Remove("makes");
}

}  // namespace sless::resources
