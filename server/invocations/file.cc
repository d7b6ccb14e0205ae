#include "server/invocations/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "client/base/strings.h"

namespace sless::invocations {
namespace {

constexpr size_t kBlock = 64 * 1024;

tl::unexpected<base::Error> SystemError(std::string_view doing, const std::string& path) {
  const int number = errno;
  return base::SystemError(fmt::format("cannot {} {}", doing, path), base::Code::kUnavailable,
                           number);
}

base::Status ReadAt(const base::Fd& file, uint64_t offset, char* to, size_t size) {
  while (size > 0) {
    const ssize_t n = ::pread(file.get(), to, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("read", "a log file");
    if (n == 0)
      return base::Err(base::Code::kUnavailable, "a log file became shorter while it was read");
    to += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return base::Ok();
}

}  // namespace

base::Result<base::Fd> OpenForRead(const std::string& path) {
  base::Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno != ENOENT && errno != ENOTDIR) return SystemError("open", path);
  return file;
}

base::Result<base::Fd> OpenForAppend(const std::string& path) {
  base::Fd file(::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return SystemError("open", path);
  return file;
}

base::Result<uint64_t> SizeOf(const base::Fd& file, const std::string& path) {
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return SystemError("look at", path);
  return static_cast<uint64_t>(info.st_size);
}

base::Status ReadLinesBackward(const base::Fd& file, uint64_t size,
                               const std::function<bool(std::string_view)>& line) {
  // `text` begins at `start`; what is before its first newline belongs to a line that begins in an
  // earlier block.
  std::string text, block;
  bool first_block = true;
  for (uint64_t start = size; start > 0;) {
    const size_t length = static_cast<size_t>(std::min<uint64_t>(kBlock, start));
    start -= length;
    block.resize(length);
    RETURN_IF_ERROR(ReadAt(file, start, block.data(), length));
    const bool has_newline = base::Contains(block, '\n');
    text.insert(0, block);
    if (std::exchange(first_block, false) && text.back() == '\n') text.pop_back();
    if (!has_newline && start > 0) continue;
    for (size_t newline; (newline = text.rfind('\n')) != std::string::npos; text.resize(newline)) {
      if (!line(std::string_view(text).substr(newline + 1))) return base::Ok();
    }
  }
  if (size > 0) line(text);
  return base::Ok();
}

}  // namespace sless::invocations
