#pragma once

// LogRecord as a JSON line; for this room only.

#include <optional>
#include <string>
#include <string_view>

#include "server/invocations/log_store.h"

namespace sless::invocations {

/// With its newline. The line is cut to kMaxLine bytes; what is not UTF-8 becomes U+FFFD.
std::string FormatLine(const LogRecord& record);
/// nullopt for anything that FormatLine did not write, such as a line cut by a crash.
std::optional<LogRecord> ParseLine(std::string_view line);

/// What a query asks for, cheap for lines that do not fit.
class LineFilter {
 public:
  explicit LineFilter(const LogQuery& query);
  std::optional<LogRecord> Match(std::string_view line) const;

 private:
  const LogQuery& query_;
  std::string request_id_text_;  // as it looks within a line
};

}  // namespace sless::invocations
