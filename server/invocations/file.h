#pragma once

// Files of a log; for this room only.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/base/result.h"

namespace sless::invocations {

/// A file descriptor that closes itself. -1: none.
class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File();
  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

/// Kept open: what is read stays the same when the file is renamed or removed. No file where it is
/// not there.
base::Result<File> OpenForRead(const std::string& path);
/// Made with 0600 where it is not there.
base::Result<File> OpenForAppend(const std::string& path);
base::Result<uint64_t> SizeOf(const File& file, const std::string& path);
/// Makes `path` and its parents, 0700 each.
base::Status MakeFolders(const std::string& path);

/// Calls `line` with each line of the first `size` bytes, last line first, until it returns false.
/// The text after the last newline is a line too.
base::Status ReadLinesBackward(const File& file, uint64_t size,
                               const std::function<bool(std::string_view)>& line);

}  // namespace sless::invocations
