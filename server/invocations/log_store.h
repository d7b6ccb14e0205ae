#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/clock.h"
#include "client/base/result.h"

namespace sless::invocations {

struct LogRecord {
  base::TimePoint time;
  int64_t revision = 0;
  std::string replica;     ///< "" for build lines
  std::string stream;      ///< stdout | stderr | system | build
  std::string request_id;  ///< "" where a line belongs to no call
  std::string line;        ///< at most kMaxLine bytes, valid UTF-8
};

inline constexpr size_t kMaxLine = 16 * 1024;

struct LogQuery {
  size_t limit = 100;      ///< 1 to 10000 newest matching lines, of 4 MiB together
  std::string request_id;  ///< "" means all
  std::string stream;      ///< "" means all
  int64_t revision = 0;    ///< 0 means all
};

/// Keeps what functions and their builds print: bounded per function, oldest dropped first;
/// survives a restart. Thread safety: all methods may be called at the same time from any thread.
class LogStore {
 public:
  virtual ~LogStore() = default;
  /// Neither waits nor fails: lines that cannot be kept are counted and reported in the server's
  /// log and, once it can be written again, in the function's.
  virtual void Append(const std::string& ns, const std::string& function, LogRecord record) = 0;
  /// More lines wait to be kept than should: whoever can let their author wait does.
  virtual bool Behind() const { return false; }
  /// Oldest first, with all that was appended before (as far as it could be kept within a second).
  virtual base::Result<std::vector<LogRecord>> Read(const std::string& ns,
                                                    const std::string& function,
                                                    const LogQuery& query) const = 0;
  /// Drops the logs of a deleted function, and every line of its revisions up to `last_revision`
  /// that comes later: replicas that drain go on talking, and must not bring the log back, nor
  /// write into that of a new function of the same name.
  virtual void Remove(const std::string& ns, const std::string& function,
                      int64_t last_revision) = 0;
};

}  // namespace sless::invocations
