#include "client/base/fd.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <system_error>

namespace sless::base {

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

std::string ErrnoText(int number) { return std::generic_category().message(number); }

Code ErrnoCode(int number, Code otherwise) {
  switch (number) {
    case EAGAIN:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case ENOSPC:
    case EDQUOT:
      return Code::kResourceExhausted;
    default:
      return otherwise;
  }
}

tl::unexpected<Error> SystemError(std::string_view what, Code otherwise, int number) {
  return Err(ErrnoCode(number, otherwise), fmt::format("{}: {}", what, ErrnoText(number)));
}

bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

Status MakeFolders(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0700) != 0 && errno != EEXIST)
      return SystemError("cannot make the folder " + part, Code::kUnavailable);
    if (end == std::string::npos) return Ok();
  }
}

}  // namespace sless::base
