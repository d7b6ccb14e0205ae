#include "server/invocations/log_line.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "client/base/strings.h"

namespace sless::invocations {
namespace {

using std::chrono::microseconds;

bool HasText(const nlohmann::json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string();
}

bool HasNumber(const nlohmann::json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number_integer();
}

// A damaged file may hold any number, more than the clock's type can.
base::TimePoint TimeOf(int64_t micros) {
  constexpr int64_t kMost = INT64_MAX / 1000;
  return base::TimePoint(microseconds(std::clamp(micros, -kMost, kMost)));
}

std::string Cut(std::string_view line) {
  constexpr std::string_view kMark = "…";
  return line.size() <= kMaxLine ? std::string(line)
                                 : base::Truncate(line, kMaxLine - kMark.size());
}

}  // namespace

std::string FormatLine(const LogRecord& record) {
  const auto time =
      std::chrono::duration_cast<microseconds>(record.time.time_since_epoch()).count();
  return base::DumpJson({{"t", time},
                         {"v", record.revision},
                         {"p", record.replica},
                         {"s", record.stream},
                         {"r", record.request_id},
                         {"m", Cut(record.line)}}) +
         "\n";
}

std::optional<LogRecord> ParseLine(std::string_view line) {
  const auto json = base::ParseJson(line);
  if (!json || !json->is_object() || !HasNumber(*json, "t") || !HasNumber(*json, "v"))
    return std::nullopt;
  for (const char* key : {"p", "s", "r", "m"}) {
    if (!HasText(*json, key)) return std::nullopt;
  }
  LogRecord record;
  record.time = TimeOf((*json)["t"].get<int64_t>());
  record.revision = (*json)["v"].get<int64_t>();
  record.replica = (*json)["p"].get<std::string>();
  record.stream = (*json)["s"].get<std::string>();
  record.request_id = (*json)["r"].get<std::string>();
  record.line = (*json)["m"].get<std::string>();
  return record;
}

LineFilter::LineFilter(const LogQuery& query) : query_(query) {
  if (!query.request_id.empty()) request_id_text_ = base::DumpJson(query.request_id);
}

std::optional<LogRecord> LineFilter::Match(std::string_view line) const {
  if (!request_id_text_.empty() && !base::Contains(line, request_id_text_)) return std::nullopt;
  auto record = ParseLine(line);
  if (!record) return std::nullopt;
  const bool fits = (query_.request_id.empty() || record->request_id == query_.request_id) &&
                    (query_.stream.empty() || record->stream == query_.stream) &&
                    (query_.revision == 0 || record->revision == query_.revision);
  return fits ? std::move(record) : std::nullopt;
}

}  // namespace sless::invocations
