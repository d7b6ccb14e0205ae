// Lines of the log files, which a crash may have cut, and times.

#include "client/base/strings.h"
#include "server/invocations/log_line.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {

std::vector<std::string> Seeds() {
  invocations::LogRecord record{base::TimePoint(std::chrono::seconds(1767225600)),
                                3,
                                "r1",
                                "stdout",
                                "abc",
                                "text \"q\" \xc3\xa9"};
  auto line = invocations::FormatLine(record);
  record.line = "not \xff UTF-8";
  return {line, invocations::FormatLine(record), "2026-01-02T03:04:05.678Z",
          "2026-12-31T23:59:60+14:00", "0001-01-01T00:00:00-23:59"};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  const auto text = fuzz::Text(data, size);
  if (const auto record = invocations::ParseLine(text)) {
    const auto line = invocations::FormatLine(*record);
    const auto again = invocations::ParseLine(line);
    fuzz::Require(again.has_value() && again->line == record->line,
                  "a line stays the same when it is written and read");
    fuzz::Require(invocations::LineFilter({}).Match(line).has_value(), "a query for all takes it");
  }
  invocations::LogRecord record;
  record.line = text;
  const auto line = invocations::FormatLine(record);
  fuzz::Require(line.find('\n') == line.size() - 1 && base::IsUtf8(line),
                "a record is one line of UTF-8");
  if (const auto time = base::ParseTime(text)) {
    fuzz::Require(base::ParseTime(base::FormatTime(*time)).has_value(),
                  "a time that was read can be written and read");
  }
  return 0;
}
