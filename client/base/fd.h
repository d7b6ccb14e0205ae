#pragma once

// Descriptors, and what to make of a system call that failed.

#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "client/base/result.h"

namespace sless::base {

/// A file descriptor that closes itself; -1: none.
class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.Release()) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// From now on the caller's to close.
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

/// `number`, an errno, in words.
std::string ErrnoText(int number = errno);
/// kResourceExhausted where the machine has no process, memory, descriptor or disk left now: it is
/// not the fault of what was asked for, and goes later. Else `otherwise`.
Code ErrnoCode(int number, Code otherwise);
/// "<what>: <errno in words>" with that code.
tl::unexpected<Error> SystemError(std::string_view what, Code otherwise, int number = errno);

/// Writes all of it to a blocking descriptor; false: it could not, errno says why.
bool WriteAll(int fd, std::string_view bytes);
/// Makes `path` and missing parents, 0700 each. Error: SystemError, kUnavailable.
Status MakeFolders(const std::string& path);

}  // namespace sless::base
