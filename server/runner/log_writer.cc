#include "server/runner/log_writer.h"

#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "client/base/strings.h"

namespace sless::runner {

void LogWriter::Write(std::string_view stream, std::string_view request_id, std::string_view line) {
  const nlohmann::ordered_json json{{"t", base::FormatTime(clock_.Now())},
                                    {"s", stream},
                                    {"r", request_id},
                                    {"m", base::Truncate(line, kMaxLine)}};
  pending_ += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  pending_ += '\n';
  if (pending_.size() > 64 * 1024) Flush();
}

void LogWriter::Flush() {
  size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t n = write(fd_, pending_.data() + done, pending_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  pending_.clear();
}

}  // namespace sless::runner
