#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "client/base/fd.h"
#include "client/source/content.h"
#include "client/source/ignore.h"
#include "client/source/paths.h"
#include "client/source/source.h"

namespace sless::source {
namespace {

using base::Code;
using base::ErrnoText;
using base::Fd;

constexpr size_t kMaxIgnoreBytes = 64 << 10;

Reader FileReader(std::shared_ptr<const Fd> fd, std::string path) {
  return [fd, path = std::move(path)](char* out, size_t size) -> base::Result<size_t> {
    for (;;) {
      const ssize_t n = read(fd->get(), out, size);
      if (n >= 0) return static_cast<size_t>(n);
      if (errno != EINTR) return BadFile(path, ErrnoText(), Code::kUnavailable);
    }
  };
}

/// Opens a regular file. `where` is its path on this machine, `shown` its path in the tree.
base::Result<std::shared_ptr<const Fd>> OpenRegular(const std::string& where,
                                                    std::string_view shown) {
  auto fd = std::make_shared<const Fd>(
      open(where.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!*fd) {
    if (errno == EACCES || errno == EPERM)
      return BadFile(shown, "cannot be read: permission denied", Code::kPermissionDenied);
    if (errno == ENOENT || errno == ELOOP || errno == ENOTDIR) {
      return BadFile(shown, "changed while the source was read; run again", Code::kAborted);
    }
    return BadFile(shown, fmt::format("cannot be read: {}", ErrnoText()), Code::kUnavailable);
  }
  struct stat info {};
  if (fstat(fd->get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return BadFile(shown, "changed while the source was read; run again", Code::kAborted);
  }
  return fd;
}

class DirectoryContents final : public Contents {
 public:
  explicit DirectoryContents(std::vector<std::string> files) : files_(std::move(files)) {}
  base::Result<Reader> Open(const Entry& entry) const override {
    ASSIGN_OR_RETURN(auto fd, OpenRegular(files_[entry.where], entry.path));
    return FileReader(std::move(fd), entry.path);
  }

 private:
  const std::vector<std::string> files_;  // paths on this machine, links resolved
};

std::string_view KindOf(mode_t mode) {
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISBLK(mode) || S_ISCHR(mode)) return "a device";
  return "a special file";
}

class Walk {
 public:
  Walk(std::string root, const Limits& limits, bool unpacked)
      : root_(std::move(root)), limits_(limits), unpacked_(unpacked) {}

  base::Result<Tree> Run() {
    if (!unpacked_) {
      ASSIGN_OR_RETURN(tree_.ignore_text, IgnoreText());
    }
    rules_ = std::make_unique<IgnoreRules>(unpacked_ ? IgnoreRules::None()
                                                     : IgnoreRules(tree_.ignore_text));
    if (rules_->TooMany()) return BadFile(kIgnoreFile, kTooManyRules, Code::kTooLarge);
    RETURN_IF_ERROR(Folder(""));
    std::sort(tree_.entries.begin(), tree_.entries.end(),
              [](const Entry& a, const Entry& b) { return a.path < b.path; });
    for (auto& entry : tree_.entries) RETURN_IF_ERROR(Hash(entry));
    tree_.contents = std::make_shared<DirectoryContents>(std::move(files_));
    return std::move(tree_);
  }

 private:
  base::Result<std::string> IgnoreText() {
    const auto where = root_ + "/" + std::string(kIgnoreFile);
    struct stat info {};
    if (lstat(where.c_str(), &info) != 0) return std::string();
    if (!S_ISREG(info.st_mode)) return BadFile(kIgnoreFile, "is not a regular file");
    ASSIGN_OR_RETURN(auto fd, OpenRegular(where, kIgnoreFile));
    const auto reader = FileReader(std::move(fd), std::string(kIgnoreFile));
    std::string text(kMaxIgnoreBytes + 1, '\0');
    size_t size = 0;
    while (size < text.size()) {
      ASSIGN_OR_RETURN(const size_t n, reader(text.data() + size, text.size() - size));
      if (n == 0) break;
      size += n;
    }
    if (size > kMaxIgnoreBytes)
      return BadFile(kIgnoreFile, "is longer than 64 KiB", Code::kTooLarge);
    text.resize(size);
    return text;
  }

  /// Lists one folder; `path` is "" for the root, otherwise relative.
  base::Status Folder(const std::string& path) {
    const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir((root_ + "/" + path).c_str()), &closedir);
    if (!dir) {
      return BadFile(path.empty() ? root_ : path, fmt::format("cannot be listed: {}", ErrnoText()),
                     errno == EACCES ? Code::kPermissionDenied : Code::kAborted);
    }
    std::vector<std::string> names;
    bool lock = false;
    while (const dirent* item = readdir(dir.get())) {
      const std::string_view name = item->d_name;
      if (name == "." || name == "..") continue;
      if (++seen_ > limits_.max_archive_entries) {
        return base::Err(Code::kTooLarge,
                         fmt::format("the source has more than {} files and folders, ignored ones "
                                     "too; name a smaller folder",
                                     limits_.max_archive_entries));
      }
      lock = lock ||
             std::find(std::begin(kLockFiles), std::end(kLockFiles), name) != std::end(kLockFiles);
      names.emplace_back(name);
    }
    std::sort(names.begin(), names.end());  // so that the same error is found each time
    for (const auto& name : names)
      RETURN_IF_ERROR(Item(path.empty() ? name : path + "/" + name, lock));
    return base::Ok();
  }

  base::Status Item(const std::string& path, bool lock_beside) {
    const auto where = root_ + "/" + path;
    struct stat info {};
    if (lstat(where.c_str(), &info) != 0)
      return BadFile(path, "vanished while the source was read; run again", Code::kAborted);
    const bool ignored = rules_->Ignored(path, S_ISDIR(info.st_mode), lock_beside);
    if (rules_->TooCostly())
      return BadFile(kIgnoreFile, "has rules that take too long to apply", Code::kTooLarge);
    if (ignored) return base::Ok();
    const auto problem = PathProblem(path, limits_);
    const bool written = problem.empty() && (S_ISDIR(info.st_mode) || S_ISREG(info.st_mode));
    if (unpacked_ && !written) return base::Ok();
    if (!problem.empty()) return BadFile(path, problem);
    if (S_ISDIR(info.st_mode)) return Folder(path);
    if (S_ISREG(info.st_mode)) return Add(path, where, info.st_mode);
    if (S_ISLNK(info.st_mode)) return Link(path, where);
    return BadFile(
        path, fmt::format(
                  "is {}, only regular files can be part of a source; remove it or ignore it in {}",
                  KindOf(info.st_mode), kIgnoreFile));
  }

  base::Status Link(const std::string& path, const std::string& where) {
    char target[PATH_MAX + 1] = "";
    if (readlink(where.c_str(), target, PATH_MAX) < 0)
      return BadFile(path, "vanished while the source was read; run again", Code::kAborted);
    const std::unique_ptr<char, void (*)(void*)> real(realpath(where.c_str(), nullptr), &free);
    if (!real)
      return BadFile(path, fmt::format("is a link to {}, which cannot be followed: {}",
                                       ShowPath(target), ErrnoText()));
    const std::string resolved = real.get();
    if (!resolved.starts_with(root_ == "/" ? root_ : root_ + "/")) {
      return BadFile(path, fmt::format("is a link to {}, which lies outside of the source; copy "
                                       "the file or ignore the link in {}",
                                       ShowPath(target), kIgnoreFile));
    }
    struct stat info {};
    if (stat(resolved.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return BadFile(
          path,
          fmt::format("is a link to {}, which is {}; only links to regular files are followed",
                      ShowPath(target), S_ISDIR(info.st_mode) ? "a folder" : "no regular file"));
    }
    return Add(path, resolved, info.st_mode);
  }

  base::Status Add(const std::string& path, const std::string& where, mode_t mode) {
    if (tree_.entries.size() >= limits_.max_files) {
      return BadFile(path, fmt::format("the source has more than {} files", limits_.max_files),
                     Code::kTooLarge);
    }
    tree_.entries.push_back({path, (mode & S_IXUSR) != 0, 0, "", files_.size()});
    files_.push_back(where);
    return base::Ok();
  }

  base::Status Hash(Entry& entry) {
    ASSIGN_OR_RETURN(auto fd, OpenRegular(files_[entry.where], entry.path));
    const uint64_t room = limits_.max_total_bytes - total_;
    RETURN_IF_ERROR(HashContent(FileReader(std::move(fd), entry.path),
                                std::min(limits_.max_file_bytes, room), buffer_, entry));
    if (entry.size > limits_.max_file_bytes) {
      return BadFile(entry.path,
                     fmt::format("is larger than {}", ShowBytes(limits_.max_file_bytes)),
                     Code::kTooLarge);
    }
    if (entry.size > room) {
      return BadFile(
          entry.path,
          fmt::format("with it the source is larger than {}", ShowBytes(limits_.max_total_bytes)),
          Code::kTooLarge);
    }
    total_ += entry.size;
    return base::Ok();
  }

  const std::string root_;  // without links
  const Limits& limits_;
  const bool unpacked_;  // by Unpack
  std::unique_ptr<IgnoreRules> rules_;
  Tree tree_;
  std::vector<std::string> files_;
  std::vector<char> buffer_ = std::vector<char>(128 << 10);
  size_t seen_ = 0;
  uint64_t total_ = 0;
};

base::Result<Tree> Read(const std::string& path, const Limits& limits, bool unpacked) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), &free);
  struct stat info {};
  if (!real || stat(real.get(), &info) != 0) {
    return base::Err(errno == EACCES ? Code::kPermissionDenied : Code::kNotFound,
                     fmt::format("the folder {} cannot be read: {}", ShowPath(path), ErrnoText()));
  }
  if (!S_ISDIR(info.st_mode)) {
    return base::Err(
        Code::kInvalidArgument,
        fmt::format("{} is a file, want a folder; a zip goes to source_zip", ShowPath(path)));
  }
  ASSIGN_OR_RETURN(auto tree, Walk(real.get(), limits, unpacked).Run());
  if (tree.entries.empty()) {
    return base::Err(
        Code::kInvalidArgument,
        fmt::format("the folder {} holds no file (ignored ones do not count)", ShowPath(path)));
  }
  return tree;
}

}  // namespace

base::Result<Tree> ReadDirectory(const std::string& path, const Limits& limits) {
  return Read(path, limits, false);
}

base::Result<Tree> ReadUnpacked(const std::string& path, const Limits& limits) {
  return Read(path, limits, true);
}

}  // namespace sless::source
