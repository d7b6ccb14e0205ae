#include "server/runner/log_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/base/strings.h"

namespace sless::runner {

LogWriter::LogWriter(int fd, const base::Clock& clock) : fd_(fd), clock_(clock) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

std::optional<base::SteadyPoint> LogWriter::WaitsUntil() const {
  if (!behind_ || pending_.size() <= kMostPending || dropped_ > 0) return std::nullopt;
  const auto until = behind_->since + kLogPatience;
  return until > clock_.Steady() ? std::optional(until) : std::nullopt;
}

void LogWriter::Write(std::string_view stream, std::string_view request_id, std::string_view line) {
  if (dropped_ > 0 || (behind_ && pending_.size() > kMostPending && !WaitsUntil())) {
    ++dropped_;
    return;
  }
  Put(stream, request_id, line);
  if (pending_.size() > 64 * 1024) Flush();
}

void LogWriter::Put(std::string_view stream, std::string_view request_id, std::string_view line) {
  const nlohmann::ordered_json json{{"t", base::FormatTime(clock_.Now())},
                                    {"s", stream},
                                    {"r", request_id},
                                    {"m", base::Truncate(line, kMaxLine)}};
  pending_ += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  pending_ += '\n';
}

void LogWriter::Flush() {
  const size_t sent = Send();
  if (!pending_.empty()) {
    if (behind_) behind_->taken += sent;
    if (behind_ ? behind_->taken >= kMostPending : pending_.size() > kMostPending)
      behind_ = {clock_.Steady()};
    return;
  }
  behind_.reset();
  if (const auto dropped = std::exchange(dropped_, 0); dropped > 0) {
    Put("system", "",
        fmt::format("{} log lines are missing here: the server did not take them in time",
                    dropped));
    Send();
  }
}

size_t LogWriter::Send() {
  size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t n = write(fd_, pending_.data() + done, pending_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) done = pending_.size();  // nobody reads
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  pending_.erase(0, done);
  return done;
}

void LogWriter::FlushAll(std::chrono::milliseconds most) {
  const auto until = clock_.Steady() + most;
  for (Flush(); !pending_.empty(); Flush()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock_.Steady()).count();
    pollfd fd{fd_, POLLOUT, 0};
    if (left <= 0 || poll(&fd, 1, static_cast<int>(left)) == 0) return;
  }
}

}  // namespace sless::runner
