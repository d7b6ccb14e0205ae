#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "client/base/digest.h"
#include "client/base/fd.h"
#include "client/base/strings.h"
#include "client/source/paths.h"
#include "client/source/source.h"

namespace sless::source {
namespace {

using base::Code;
using base::ErrnoText;
using base::Fd;

tl::unexpected<base::Error> CannotWrite(std::string_view path) {
  const int number = errno;
  return BadFile(path, fmt::format("cannot be written: {}", ErrnoText(number)),
                 base::ErrnoCode(number, Code::kInternal));
}

base::Result<Fd> OpenEmpty(const std::string& dir) {
  if (mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return CannotWrite(dir);
  Fd root(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root) return CannotWrite(dir);
  const std::unique_ptr<DIR, int (*)(DIR*)> list(opendir(dir.c_str()), &closedir);
  if (!list) return CannotWrite(dir);
  while (const dirent* item = readdir(list.get())) {
    const std::string_view name = item->d_name;
    if (name != "." && name != "..") {
      return base::Err(Code::kFailedPrecondition,
                       fmt::format("the folder {} to unpack into is not empty", ShowPath(dir)));
    }
  }
  return root;
}

class Unpacker {
 public:
  explicit Unpacker(Fd root) : root_(std::move(root)) {}

  base::Status Write(const Tree& tree) {
    for (const auto& entry : tree.entries) {
      // Trees made by this room are sound; one made by hand must not leave the folder either.
      if (const auto problem = PathProblem(entry.path, Limits{}); !problem.empty())
        return BadFile(entry.path, problem);
      RETURN_IF_ERROR(File(tree, entry));
    }
    return base::Ok();
  }

 private:
  /// The folder that `path` lies in; kept for the next file, which mostly lies in the same one.
  base::Result<int> Folder(std::string_view path) {
    const size_t slash = path.rfind('/');
    const auto folder =
        slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
    if (folder.empty()) return root_.get();
    if (folder == last_folder_) return last_.get();
    int at = root_.get();
    Fd current;
    for (const auto& segment : base::Split(folder, '/')) {
      if (mkdirat(at, segment.c_str(), 0755) == 0) {
        if (fchmodat(at, segment.c_str(), 0755, 0) != 0)
          return CannotWrite(path);  // whatever the umask says
      } else if (errno != EEXIST) {
        return CannotWrite(path);
      }
      Fd next(openat(at, segment.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next) return CannotWrite(path);
      current = std::move(next);
      at = current.get();
    }
    last_ = std::move(current);
    last_folder_ = folder;
    return last_.get();
  }

  base::Status File(const Tree& tree, const Entry& entry) {
    ASSIGN_OR_RETURN(const auto reader, tree.contents->Open(entry));
    ASSIGN_OR_RETURN(const int folder, Folder(entry.path));
    const auto name = entry.path.substr(entry.path.rfind('/') + 1);  // npos + 1 is 0
    const mode_t mode = entry.executable ? 0755 : 0644;
    const Fd file(
        openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!file || fchmod(file.get(), mode) != 0) return CannotWrite(entry.path);
    base::Sha256 hash;
    for (uint64_t total = 0;;) {
      ASSIGN_OR_RETURN(const size_t n, reader(buffer_.data(), buffer_.size()));
      if (n == 0) break;
      total += n;
      if (total > entry.size) break;
      hash.Update(std::string_view(buffer_.data(), n));
      if (!base::WriteAll(file.get(), std::string_view(buffer_.data(), n)))
        return CannotWrite(entry.path);
    }
    if (hash.Hex() != entry.digest)
      return BadFile(entry.path, "was changed after the source was hashed", Code::kAborted);
    return base::Ok();
  }

  const Fd root_;
  Fd last_;
  std::string last_folder_;
  std::vector<char> buffer_ = std::vector<char>(128 << 10);
};

}  // namespace

base::Status Unpack(const Tree& tree, const std::string& dir) {
  ASSIGN_OR_RETURN(auto root, OpenEmpty(dir));
  return Unpacker(std::move(root)).Write(tree);
}

base::Result<Tree> Unpack(const std::string& zip_path, const std::string& dir,
                          const Limits& limits) {
  ASSIGN_OR_RETURN(auto tree, ReadZip(zip_path, limits));
  RETURN_IF_ERROR(Unpack(tree, dir));
  return tree;
}

}  // namespace sless::source
