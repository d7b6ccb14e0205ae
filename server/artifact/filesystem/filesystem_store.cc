#include "server/artifact/filesystem/filesystem_store.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <mutex>

#include "client/base/digest.h"
#include "client/base/strings.h"
#include "server/artifact/filesystem/files.h"

namespace sless::artifact {
namespace {

using base::Code;
using base::Err;
using base::Result;
using base::Status;
namespace fs = std::filesystem;

constexpr std::string_view kTempDir = ".tmp";  // no DNS label, so no namespace

Status CheckNamespace(const std::string& ns) {
  const std::string problem = base::DnsLabelProblem(ns);
  if (!problem.empty())
    return Err(Code::kInvalidArgument, fmt::format("a namespace is a DNS label: {}", problem));
  return base::Ok();
}

Result<std::string> FileName(const std::string& digest) {
  if (!base::IsContentHash(digest))
    return Err(Code::kInvalidArgument, "the name of an artifact is \"sha256:\" and 64 hex digits");
  return digest.substr(base::kContentHashPrefix.size());
}

bool IsRegular(const std::string& path, struct stat& info) {
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

base::TimePoint LastUsed(const struct stat& info) {
  return base::TimePoint(std::chrono::seconds(info.st_mtim.tv_sec) +
                         std::chrono::nanoseconds(info.st_mtim.tv_nsec));
}

// The time of last use is the file's modification time. Under Place::folders, so that it does not
// race a removal.
Status Touch(const std::string& path) {
  if (::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0)
    return SystemError("mark as used", path);
  return base::Ok();
}

// What the store and its writers share.
struct Place {
  const std::string root;
  const uint64_t max_bytes;
  std::mutex folders;  // so that no folder is removed between its making and its first file, no
                       // file that was just used
};

class FileWriter final : public Writer {
 public:
  FileWriter(std::shared_ptr<Place> place, std::string ns, std::string temp, base::Fd file)
      : place_(std::move(place)),
        ns_(std::move(ns)),
        temp_(std::move(temp)),
        file_(std::move(file)) {}
  ~FileWriter() override {
    if (!temp_.empty()) ::unlink(temp_.c_str());
  }

  Status Write(std::string_view bytes) override {
    if (temp_.empty()) return Err(Code::kFailedPrecondition, "the artifact is committed");
    if (bytes.size() > place_->max_bytes - size_) {
      return Err(Code::kTooLarge,
                 fmt::format("an artifact has at most {} MiB", place_->max_bytes >> 20));
    }
    if (!base::WriteAll(file_.get(), bytes)) return SystemError("write", temp_);
    size_ += bytes.size();
    return base::Ok();
  }

  Result<std::string> Path() override {
    if (temp_.empty()) return Err(Code::kFailedPrecondition, "the artifact is committed");
    return temp_;
  }

  Status Commit(const std::string& digest) override {
    ASSIGN_OR_RETURN(const std::string name, FileName(digest));
    if (temp_.empty()) return Err(Code::kFailedPrecondition, "the artifact is committed");
    const std::string dir = place_->root + "/" + ns_, path = dir + "/" + name;
    // The contents before the name, the name before the answer: a crash leaves a whole artifact or
    // none.
    if (::fsync(file_.get()) != 0) return SystemError("sync", temp_);
    std::lock_guard lock(place_->folders);
    RETURN_IF_ERROR(base::MakeFolders(dir));
    // Not rename(2), which would replace what is there.
    if (::link(temp_.c_str(), path.c_str()) != 0) {
      if (errno != EEXIST) return SystemError("store", path);
      RETURN_IF_ERROR(Touch(path));
    }
    RETURN_IF_ERROR(SyncDirectory(dir));
    RETURN_IF_ERROR(SyncDirectory(place_->root));
    ::unlink(temp_.c_str());
    temp_.clear();
    return base::Ok();
  }

 private:
  const std::shared_ptr<Place> place_;
  const std::string ns_;
  std::string temp_;  // "" once committed
  base::Fd file_;
  uint64_t size_ = 0;
};

class FilesystemStore final : public ArtifactStore {
 public:
  explicit FilesystemStore(std::shared_ptr<Place> place) : place_(std::move(place)) {}

  Result<bool> Has(const std::string& ns, const std::string& digest) const override {
    ASSIGN_OR_RETURN(const std::string path, PathOf(ns, digest));
    struct stat info {};
    std::lock_guard lock(place_->folders);
    if (IsRegular(path, info)) {
      RETURN_IF_ERROR(Touch(path));
      return true;
    }
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return SystemError("look for", path);
  }

  Result<std::unique_ptr<Writer>> Create(const std::string& ns) override {
    RETURN_IF_ERROR(CheckNamespace(ns));
    const std::string temp = fmt::format("{}/{}/{}", place_->root, kTempDir, base::RandomHex(16));
    base::Fd file(::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file) return SystemError("make", temp);
    return std::make_unique<FileWriter>(place_, ns, temp, std::move(file));
  }

  Result<std::string> Fetch(const std::string& ns, const std::string& digest) override {
    ASSIGN_OR_RETURN(const bool there, Has(ns, digest));
    if (!there) return Err(Code::kNotFound, fmt::format("namespace {} has no code {}", ns, digest));
    return PathOf(ns, digest);
  }

  Status Remove(const std::string& ns, const std::string& digest,
                base::TimePoint unused_since) override {
    ASSIGN_OR_RETURN(const std::string path, PathOf(ns, digest));
    std::lock_guard lock(place_->folders);
    struct stat info {};
    if (IsRegular(path, info) && LastUsed(info) >= unused_since) return base::Ok();
    if (::unlink(path.c_str()) != 0 && errno != ENOENT && errno != ENOTDIR)
      return SystemError("remove", path);
    ::rmdir((place_->root + "/" + ns)
                .c_str());  // goes with its last artifact; fails while there are others
    return base::Ok();
  }

  Result<std::vector<Info>> List(const std::string& ns) const override {
    RETURN_IF_ERROR(CheckNamespace(ns));
    std::vector<Info> all;
    ASSIGN_OR_RETURN(const auto names, Names(place_->root + "/" + ns));
    for (const auto& name : names) {
      const std::string digest = std::string(base::kContentHashPrefix) + name;
      struct stat info {};
      if (!FileName(digest) || !IsRegular(place_->root + "/" + ns + "/" + name, info)) continue;
      all.push_back({digest, static_cast<uint64_t>(info.st_size), LastUsed(info)});
    }
    return all;
  }

  Result<std::vector<std::string>> Namespaces() const override {
    ASSIGN_OR_RETURN(auto names, Names(place_->root));
    std::erase_if(names,
                  [](const std::string& name) { return !base::DnsLabelProblem(name).empty(); });
    return names;
  }

 private:
  Result<std::string> PathOf(const std::string& ns, const std::string& digest) const {
    RETURN_IF_ERROR(CheckNamespace(ns));
    ASSIGN_OR_RETURN(const std::string name, FileName(digest));
    return fmt::format("{}/{}/{}", place_->root, ns, name);
  }

  // Entries of a folder in byte order; none where it is not there.
  static Result<std::vector<std::string>> Names(const std::string& dir) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error))
      names.push_back(it->path().filename());
    if (error && error != std::errc::no_such_file_or_directory) {
      return Err(Code::kUnavailable, fmt::format("cannot list {}: {}", dir, error.message()));
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  const std::shared_ptr<Place> place_;
};

// Nothing in there outlives the process that wrote it.
Status EmptyTempDir(const std::string& temp) {
  RETURN_IF_ERROR(base::MakeFolders(temp));
  std::error_code error;
  for (fs::directory_iterator it(temp, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;  // a file that stays costs room only; its name is never used again
    fs::remove_all(it->path(), ignored);
  }
  if (error)
    return Err(Code::kUnavailable, fmt::format("cannot list {}: {}", temp, error.message()));
  return base::Ok();
}

}  // namespace

Result<std::unique_ptr<ArtifactStore>> OpenFilesystemStore(const std::string& dir,
                                                           uint64_t max_bytes) {
  RETURN_IF_ERROR(base::MakeFolders(dir));
  RETURN_IF_ERROR(EmptyTempDir(fmt::format("{}/{}", dir, kTempDir)));
  return std::make_unique<FilesystemStore>(std::shared_ptr<Place>(new Place{dir, max_bytes, {}}));
}

}  // namespace sless::artifact
