#include "server/build/process/written_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <vector>

#include "client/base/strings.h"

namespace sless::build {
namespace {

using base::Code;
using base::Fd;

constexpr int kMaxDepth = 64;
constexpr int kMaxRounds = 100'000;  // one for each level at most
constexpr uint64_t kBlock = 4096;

// Through the descriptor: the name may have become a link to anything meanwhile.
Fd OpenChild(int at, const std::string& name) {
  const Fd place(openat(at, name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!place || fstat(place.get(), &info) != 0) return Fd();
  if ((info.st_mode & S_IRWXU) != S_IRWXU) {
    chmod(fmt::format("/proc/self/fd/{}", place.get()).c_str(), (info.st_mode & 07777) | S_IRWXU);
  }
  return Fd(openat(place.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

bool Vanished(int number) { return number == ENOENT || number == ENOTDIR; }

/// Calls `each(name)`, which returns a Status, for all in `folder` but "." and "..".
template <class Each>
base::Status ForEach(const Fd& folder, Each&& each) {
  Fd own(openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> list(own ? fdopendir(own.get()) : nullptr, &closedir);
  if (!list) return base::SystemError("cannot list a folder", Code::kInternal);
  own.Release();
  while (const dirent* item = readdir(list.get())) {
    const std::string name = item->d_name;
    if (name != "." && name != "..") RETURN_IF_ERROR(each(name));
  }
  return base::Ok();
}

base::Status Add(const Fd& folder, int depth, uint64_t enough, Extent& extent) {
  if (depth > kMaxDepth) {
    return base::Err(Code::kFailedPrecondition,
                     fmt::format("its folders are nested deeper than {}", kMaxDepth), "",
                     "BuildFailed");
  }
  return ForEach(folder, [&](const std::string& name) -> base::Status {
    struct stat info {};
    if (extent.disk > enough ||
        fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
      return base::Ok();
    extent.disk += std::max(static_cast<uint64_t>(info.st_blocks) * 512, kBlock);
    if (S_ISREG(info.st_mode)) {
      ++extent.files;
      extent.bytes += static_cast<uint64_t>(info.st_size);
    } else if (S_ISDIR(info.st_mode)) {
      const Fd child = OpenChild(folder.get(), name);
      if (child) return Add(child, depth + 1, enough, extent);
      if (!Vanished(errno)) return base::SystemError("cannot read a folder", Code::kInternal);
    } else if (!S_ISLNK(info.st_mode)) {
      extent.special = true;
    }
    return base::Ok();
  });
}

bool RemoveFile(const Fd& folder, const std::string& name) {
  return unlinkat(folder.get(), name.c_str(), 0) == 0 || errno == ENOENT;
}

// Empties `folder` of what `name` is in it. Folders below that one come up beside it: however deep
// they go, two descriptors suffice.
base::Status Flatten(const Fd& folder, const std::string& name, const std::string& fresh,
                     uint64_t& moved) {
  const auto fail = [] { return base::SystemError("something below it stays", Code::kInternal); };
  if (RemoveFile(folder, name)) return base::Ok();
  if (errno != EISDIR) return fail();
  const Fd child = OpenChild(folder.get(), name);
  if (!child) return fail();
  RETURN_IF_ERROR(ForEach(child, [&](const std::string& inner) -> base::Status {
    if (RemoveFile(child, inner)) return base::Ok();
    if (errno != EISDIR) return fail();
    OpenChild(child.get(), inner);  // a folder that moves must be writable itself
    const std::string up = fmt::format("{}{}", fresh, ++moved);
    if (renameat(child.get(), inner.c_str(), folder.get(), up.c_str()) != 0) return fail();
    return base::Ok();
  }));
  if (unlinkat(folder.get(), name.c_str(), AT_REMOVEDIR) != 0) return fail();
  return base::Ok();
}

}  // namespace

bool IsFolder(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

base::Result<Fd> OpenFolder(const std::string& path) {
  Fd folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return base::SystemError("cannot open the folder " + path, Code::kInternal);
  return folder;
}

bool IsSameFolder(const Fd& folder, const std::string& path) {
  struct stat opened {
  }, named{};
  return fstat(folder.get(), &opened) == 0 && lstat(path.c_str(), &named) == 0 &&
         S_ISDIR(named.st_mode) && opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

base::Result<Extent> Measure(const std::string& path, uint64_t enough) {
  const Fd folder = OpenChild(AT_FDCWD, path);
  if (!folder) return base::SystemError("cannot read the folder " + path, Code::kInternal);
  Extent extent;
  RETURN_IF_ERROR(Add(folder, 0, enough, extent));
  return extent;
}

bool Exchange(const std::string& a, const std::string& b) {
  if (renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
  return (errno == EINVAL || errno == ENOSYS) && ExchangeByRenames(a, b);
}

bool ExchangeByRenames(const std::string& a, const std::string& b) {
  const std::string aside = a + ".aside";
  if (rename(b.c_str(), aside.c_str()) != 0) return false;
  if (rename(a.c_str(), b.c_str()) == 0) {
    if (rename(aside.c_str(), a.c_str()) == 0) return true;
    const int number = errno;
    rename(b.c_str(), a.c_str());
    errno = number;
  }
  const int number = errno;
  rename(aside.c_str(), b.c_str());
  errno = number;
  return false;
}

base::Status RemoveTree(const std::string& path) {
  const auto fail = [&](int number) {
    return base::SystemError("cannot remove " + path, Code::kInternal, number);
  };
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return base::Ok();
  const Fd folder = OpenChild(AT_FDCWD, path);
  if (!folder) return fail(errno);
  const std::string fresh = base::RandomHex(8) + "-";
  uint64_t moved = 0;
  bool empty = false;
  for (int round = 0; !empty && round < kMaxRounds; ++round) {
    empty = true;
    const auto done = ForEach(folder, [&](const std::string& name) {
      empty = false;
      return Flatten(folder, name, fresh, moved);
    });
    if (!done) {
      return base::Err(Code::kInternal,
                       fmt::format("cannot remove {}: {}", path, done.error().message));
    }
  }
  if (rmdir(path.c_str()) != 0) return fail(errno);
  return base::Ok();
}

}  // namespace sless::build
