#include "server/invocations/function_log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "server/invocations/log_line.h"

namespace sless::invocations {
namespace {

using base::Code;
using base::Err;
using base::Status;

// The answer to a reader that is slow stays in memory.
constexpr size_t kMaxReadBytes = 4 * 1024 * 1024;

}  // namespace

Status FunctionLog::OpenCurrent() {
  RETURN_IF_ERROR(base::MakeFolders(dir_));
  ASSIGN_OR_RETURN(current_, OpenForAppend(Current()));
  ASSIGN_OR_RETURN(size_, SizeOf(current_, Current()));
  char last = '\n';
  if (size_ > 0 && ::pread(current_.get(), &last, 1, static_cast<off_t>(size_ - 1)) != 1)
    last = '\0';
  torn_ = last != '\n';  // the process before was killed while it wrote
  return base::Ok();
}

Status FunctionLog::Rotate() {
  current_ = base::Fd();
  if (std::rename(Current().c_str(), Older().c_str()) != 0 && errno != ENOENT) {
    return base::SystemError("cannot rename " + Current(), Code::kUnavailable);
  }
  return OpenCurrent();
}

Status FunctionLog::Append(int64_t revision, std::string_view line) {
  std::lock_guard lock(mutex_);
  if (revision <= removed_) return base::Ok();
  if (!current_) RETURN_IF_ERROR(OpenCurrent());
  if (size_ > 0 && size_ + line.size() > segment_bytes_) RETURN_IF_ERROR(Rotate());
  std::string whole;
  if (torn_) {
    whole = "\n" + std::string(line);
    line = whole;
  }
  while (!line.empty()) {
    const ssize_t n = ::write(current_.get(), line.data(), line.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::SystemError("cannot write " + Current(), Code::kUnavailable);
    size_ += static_cast<uint64_t>(n);
    line.remove_prefix(static_cast<size_t>(n));
    torn_ = !line.empty();
  }
  return base::Ok();
}

base::Result<std::vector<LogRecord>> FunctionLog::Read(const LogQuery& query) {
  base::Fd current, older;
  uint64_t current_size = 0, older_size = 0;
  {
    // Both are opened in one moment; after that renames and removals do not matter, and files only
    // grow.
    std::lock_guard lock(mutex_);
    ASSIGN_OR_RETURN(current, OpenForRead(Current()));
    ASSIGN_OR_RETURN(older, OpenForRead(Older()));
    if (current) {
      ASSIGN_OR_RETURN(current_size, SizeOf(current, Current()));
    }
    if (older) {
      ASSIGN_OR_RETURN(older_size, SizeOf(older, Older()));
    }
  }
  std::vector<LogRecord> records;
  size_t bytes = 0;
  const LineFilter filter(query);
  const auto take = [&](std::string_view line) {
    if (auto record = filter.Match(line)) {
      bytes += record->line.size();
      records.push_back(std::move(*record));
    }
    return records.size() < query.limit && bytes < kMaxReadBytes;
  };
  if (current) RETURN_IF_ERROR(ReadLinesBackward(current, current_size, take));
  if (older && records.size() < query.limit && bytes < kMaxReadBytes)
    RETURN_IF_ERROR(ReadLinesBackward(older, older_size, take));
  std::reverse(records.begin(), records.end());
  return records;
}

Status FunctionLog::Remove(int64_t last_revision) {
  std::lock_guard lock(mutex_);
  removed_ = std::max(removed_, last_revision);
  current_ = base::Fd();
  std::error_code error;
  std::filesystem::remove_all(dir_, error);
  if (error)
    return Err(Code::kUnavailable, fmt::format("cannot remove {}: {}", dir_, error.message()));
  return base::Ok();
}

}  // namespace sless::invocations
