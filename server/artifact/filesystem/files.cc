#include "server/artifact/filesystem/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

namespace sless::artifact {

tl::unexpected<base::Error> SystemError(std::string_view doing, const std::string& path) {
  const int number = errno;
  // As the store says it: it goes by itself, and is not for the client to mend.
  if (number == ENOSPC || number == EDQUOT)
    return base::Err(base::Code::kUnavailable, "the code cannot be stored: the disk is full");
  return base::SystemError(fmt::format("cannot {} {}", doing, path), base::Code::kUnavailable,
                           number);
}

base::Status SyncDirectory(const std::string& path) {
  const base::Fd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir || ::fsync(dir.get()) != 0) return SystemError("sync the folder", path);
  return base::Ok();
}

}  // namespace sless::artifact
