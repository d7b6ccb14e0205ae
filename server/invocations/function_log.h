#pragma once

// The two files of one function; for this room only.

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "client/base/result.h"
#include "server/invocations/file.h"
#include "server/invocations/log_store.h"

namespace sless::invocations {

/// Thread safety: all methods may be called at the same time from any thread. A Read does not hold
/// up an Append.
class FunctionLog {
 public:
  /// Lines of revisions up to `removed` are dropped, see LogStore::Remove.
  FunctionLog(std::string dir, uint64_t segment_bytes, int64_t removed)
      : dir_(std::move(dir)), segment_bytes_(segment_bytes), removed_(removed) {}

  /// `line` with its newline. Error: kUnavailable; the line may be there in part, which Read skips.
  base::Status Append(int64_t revision, std::string_view line);
  base::Result<std::vector<LogRecord>> Read(const LogQuery& query);
  /// Removes the files; an Append of a later revision makes them again.
  base::Status Remove(int64_t last_revision);

 private:
  base::Status OpenCurrent();
  base::Status Rotate();
  std::string Current() const { return dir_ + "/current.jsonl"; }
  std::string Older() const { return dir_ + "/older.jsonl"; }

  const std::string dir_;
  const uint64_t segment_bytes_;
  std::mutex mutex_;
  int64_t removed_;
  base::Fd current_;   // opened by the first Append
  uint64_t size_ = 0;  // of current_
  bool torn_ = false;  // current_ ends in the middle of a line
};

}  // namespace sless::invocations
