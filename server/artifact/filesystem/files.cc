#include "server/artifact/filesystem/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sless::artifact {

using base::Code;

File& File::operator=(File&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) ::close(fd_);
}

tl::unexpected<base::Error> SystemError(std::string_view doing, const std::string& path) {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT;
  return base::Err(full ? Code::kResourceExhausted : Code::kUnavailable,
                   fmt::format("cannot {} {}: {}", doing, path, std::strerror(error)));
}

base::Status MakeDirectory(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (::mkdir(part.c_str(), 0700) != 0 && errno != EEXIST)
      return SystemError("make the folder", part);
    if (end == std::string::npos) return base::Ok();
  }
}

base::Status WriteAll(const File& file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(file.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return SystemError("write", path);
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return base::Ok();
}

base::Status SyncDirectory(const std::string& path) {
  const File dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir.get() < 0 || ::fsync(dir.get()) != 0) return SystemError("sync the folder", path);
  return base::Ok();
}

}  // namespace sless::artifact
