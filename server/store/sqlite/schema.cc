#include "server/store/sqlite/schema.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

namespace sless::store {
namespace {

using base::Code;
using base::Err;

// "sless" in the 32 bits that SQLite keeps for telling applications apart.
constexpr int kApplicationId = 0x736c6573;

constexpr const char* kSchema = R"sql(
  CREATE TABLE object(
    kind TEXT NOT NULL, ns TEXT NOT NULL, name TEXT NOT NULL,
    uid TEXT NOT NULL, generation INTEGER NOT NULL, revision INTEGER NOT NULL,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL, deletion_requested_at TEXT NOT NULL,
    annotations TEXT NOT NULL, spec TEXT NOT NULL, status TEXT NOT NULL,
    PRIMARY KEY(kind, ns, name));
  CREATE TABLE counter(id INTEGER PRIMARY KEY CHECK(id = 0), revision INTEGER NOT NULL);
  INSERT INTO counter VALUES(0, 0);
)sql";

tl::unexpected<base::Error> FileError(std::string_view doing, const std::string& path,
                                      std::string_view what) {
  return Err(Code::kUnavailable, fmt::format("cannot {} the store {}: {}", doing, path, what));
}

// SQLite does not wait for a lock when it changes the journal mode, so another process that opens
// the same new file must be met by trying again.
base::Status EnableWal(Database& db) {
  for (int i = 0;; ++i) {
    auto mode = db.Value("PRAGMA journal_mode=WAL");
    if (mode && *mode == "wal") return base::Ok();
    const bool locked = !mode && mode.error().code == Code::kUnavailable;
    if (!locked || i == 50) {
      if (!mode) return Err(mode.error());
      return Err(Code::kFailedPrecondition,
                 fmt::format("the store needs SQLite's WAL mode, which its file system does not "
                             "support (mode is {})",
                             *mode));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

base::Result<int> ReadInt(Database& db, const std::string& sql) {
  ASSIGN_OR_RETURN(const auto text, db.Value(sql));
  return std::atoi(text.c_str());
}

// root may make the first token before the server, another user, has made the store. `fd` is a file
// that was made just now: an older one could be a trap of the folder's owner.
bool GiveToOwner(int fd, const std::filesystem::path& folder) {
  struct stat info {};
  if (::geteuid() != 0 || ::stat(folder.c_str(), &info) != 0) return true;
  return info.st_uid == 0 || ::fchown(fd, info.st_uid, info.st_gid) == 0;
}

}  // namespace

base::Status PrepareFile(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  if (!folder.empty() && !std::filesystem::exists(folder, error)) {
    std::filesystem::create_directories(folder.parent_path(), error);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST)
      return FileError("make the folder of", path, std::strerror(errno));
  }
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const bool made = fd >= 0;
  if (!made && errno == EEXIST) fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return FileError("open", path, std::strerror(errno));
  struct stat info {};
  const bool is_file = ::fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
  // SQLite gives its -wal and -shm files the permissions of this file.
  const bool closed = is_file && ((info.st_mode & 077) == 0 || ::fchmod(fd, 0600) == 0) &&
                      (!made || GiveToOwner(fd, folder));
  ::close(fd);
  if (!is_file) return FileError("open", path, "it is no regular file");
  if (!closed)
    return FileError("protect", path, "it can be read by others and belongs to somebody else");
  return base::Ok();
}

base::Status PrepareSchema(Database& db, const std::string& path) {
  RETURN_IF_ERROR(EnableWal(db));
  RETURN_IF_ERROR(db.Execute("PRAGMA journal_size_limit=67108864"));
  ASSIGN_OR_RETURN(auto transaction, Transaction::Begin(db));
  ASSIGN_OR_RETURN(const int application, ReadInt(db, "PRAGMA application_id"));
  ASSIGN_OR_RETURN(const int version, ReadInt(db, "PRAGMA user_version"));
  ASSIGN_OR_RETURN(const int tables, ReadInt(db, "SELECT count(*) FROM sqlite_master"));
  if (tables == 0 && application == 0 && version == 0) {
    RETURN_IF_ERROR(db.Execute(kSchema));
    RETURN_IF_ERROR(db.Execute(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}",
                                           kApplicationId, kSchemaVersion)));
    return transaction.Commit();
  }
  if (application != kApplicationId) {
    return Err(
        Code::kFailedPrecondition,
        fmt::format("{} is a SQLite database, but not one of slessd; name another data folder",
                    path),
        "", "NotOurStore");
  }
  if (version > kSchemaVersion) {
    return Err(Code::kFailedPrecondition,
               fmt::format("{} was written by a newer slessd (its schema is {}, this one knows up "
                           "to {}); run that version, or "
                           "restore a backup made before the upgrade",
                           path, version, kSchemaVersion),
               "", "StoreTooNew");
  }
  return transaction.Commit();
}

base::Status CheckWhole(Database& db, const std::string& path) {
  ASSIGN_OR_RETURN(const auto check, db.Value("PRAGMA quick_check(1)"));
  if (check == "ok") return base::Ok();
  return Err(Code::kFailedPrecondition,
             fmt::format("{} is damaged: {}; restore it from a backup", path, check), "",
             "StoreDamaged");
}

}  // namespace sless::store
