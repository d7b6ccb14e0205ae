#include "server/app/data_dir.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "client/base/fd.h"
#include "client/base/json.h"

namespace sless::app {
namespace {

using base::Code;
using base::Err;

tl::unexpected<base::Error> SystemError(std::string_view what, const std::string& path) {
  const int number = errno;
  return base::SystemError(fmt::format("{} {}", what, path), Code::kUnavailable, number);
}

base::Status WriteAll(int fd, std::string_view text, const std::string& path) {
  if (!base::WriteAll(fd, text)) return SystemError("cannot write", path);
  return base::Ok();
}

std::string ReadShort(int fd) {
  char buffer[32];
  const auto n = pread(fd, buffer, sizeof buffer, 0);
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : "";
}

}  // namespace

base::Result<DataDir> DataDir::Lock(const std::string& path) {
  if (path.empty())
    return Err(Code::kInvalidArgument,
               "no data folder: give --data-dir DIR (or data_dir in the configuration file)");
  std::error_code error;
  const bool fresh = std::filesystem::create_directories(path, error);
  if (error)
    return Err(Code::kUnavailable,
               fmt::format("cannot make the data folder {}: {}", path, error.message()));
  if (fresh && chmod(path.c_str(), 0700) != 0) return SystemError("cannot set the mode of", path);
  const auto absolute = std::filesystem::canonical(path, error).string();
  if (error)
    return Err(Code::kUnavailable,
               fmt::format("cannot use the data folder {}: {}", path, error.message()));

  const auto lock_path = absolute + "/lock";
  const int fd = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return SystemError("cannot open", lock_path);
  DataDir dir(absolute, fd);
  // A record lock and not flock: a child that was forked a moment before a kill -9 has the file
  // open too, until its exec, and would hold an flock for us.
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd, F_SETLK, &lock) != 0) {
    if (errno != EACCES && errno != EAGAIN) return SystemError("cannot lock", lock_path);
    const auto pid = ReadShort(fd);
    return Err(
        Code::kFailedPrecondition,
        fmt::format(
            "another slessd{} has the data folder {}; stop it first, or give another --data-dir",
            pid.empty() ? "" : " (process " + pid + ")", absolute));
  }
  if (ftruncate(fd, 0) != 0) return SystemError("cannot write", lock_path);
  // For the message above only: a full disk keeps nobody from serving what is there.
  if (!base::WriteAll(fd, std::to_string(getpid())) && errno != ENOSPC && errno != EDQUOT)
    return SystemError("cannot write", lock_path);
  // What a killed server left must not send anybody to a wrong address.
  unlink(dir.Path("server.json").c_str());
  return dir;
}

DataDir::DataDir(DataDir&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      announced_(std::exchange(other.announced_, false)) {}

DataDir::~DataDir() {
  if (fd_ < 0) return;
  if (announced_) unlink(Path("server.json").c_str());
  close(fd_);
}

base::Status DataDir::Announce(const std::string& address) {
  const auto path = Path("server.json"), draft = path + ".tmp";
  const nlohmann::json info{{"pid", getpid()}, {"address", address}};
  const int fd = open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return SystemError("cannot open", draft);
  const auto written = WriteAll(fd, base::DumpJson(info) + "\n", draft);
  close(fd);
  RETURN_IF_ERROR(written);
  if (rename(draft.c_str(), path.c_str()) != 0) return SystemError("cannot rename", draft);
  announced_ = true;
  return base::Ok();
}

}  // namespace sless::app
