#pragma once

// System calls as errors of this project; for this room only.

#include <string>
#include <string_view>
#include <utility>

#include "client/base/result.h"

namespace sless::artifact {

/// A file descriptor that closes itself.
class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept;
  ~File();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

/// The error of the last system call: kResourceExhausted where the disk is full, else kUnavailable.
tl::unexpected<base::Error> SystemError(std::string_view doing, const std::string& path);
/// Makes `path` and missing parents, 0700 each.
base::Status MakeDirectory(const std::string& path);
/// Writes all of it.
base::Status WriteAll(const File& file, std::string_view bytes, const std::string& path);
/// Makes the entries of a folder durable.
base::Status SyncDirectory(const std::string& path);

}  // namespace sless::artifact
