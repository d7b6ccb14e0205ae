#include "server/store/sqlite/database.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <cerrno>

namespace sless::store {
namespace {

using base::Code;
using base::Err;

constexpr int kBusyTimeoutMs = 5000;

/// Where it cannot lengthen the file of the WAL's index, it calls a full disk an I/O error.
bool IsDiskFull(sqlite3* db, int rc) {
  if ((rc & 0xff) != SQLITE_IOERR) return (rc & 0xff) == SQLITE_FULL;
  const int number = db ? sqlite3_system_errno(db) : 0;
  return rc == SQLITE_IOERR_SHMSIZE || number == ENOSPC || number == EDQUOT;
}

tl::unexpected<base::Error> SqliteError(sqlite3* db, int rc) {
  const std::string text = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
  if (IsDiskFull(db, rc))
    return Err(Code::kUnavailable, "the store cannot write: the disk is full");
  switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Err(Code::kUnavailable,
                 fmt::format("the store was locked by another process for more than {} s",
                             kBusyTimeoutMs / 1000));
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return Err(Code::kUnavailable,
                 fmt::format("the store cannot be read or written: {} (code {})", text, rc));
    case SQLITE_CORRUPT:
      return Err(Code::kFailedPrecondition,
                 fmt::format("the store's file is damaged: {}; restore it from a backup", text), "",
                 "StoreDamaged");
    case SQLITE_NOTADB:
      return Err(Code::kFailedPrecondition,
                 "the store's file is not a database; restore it from a backup or name another "
                 "data folder",
                 "", "StoreDamaged");
    case SQLITE_TOOBIG:
      return Err(Code::kTooLarge, "the object is too large for the store");
    default:
      return Err(Code::kInternal, fmt::format("the store failed: {} (code {})", text, rc));
  }
}

}  // namespace

Query::~Query() {
  if (!statement_) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Query& Query::Text(std::string_view value) {
  if (error_ == SQLITE_OK) {
    const char* data = value.data() ? value.data() : "";  // a null pointer would bind NULL
    error_ = sqlite3_bind_text64(statement_, next_parameter_++, data, value.size(), SQLITE_STATIC,
                                 SQLITE_UTF8);
  }
  return *this;
}

Query& Query::Int(int64_t value) {
  if (error_ == SQLITE_OK) error_ = sqlite3_bind_int64(statement_, next_parameter_++, value);
  return *this;
}

base::Result<bool> Query::Step() {
  if (error_ != SQLITE_OK) return SqliteError(db_, error_);
  const int rc = sqlite3_step(statement_);
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  return SqliteError(db_, rc);
}

base::Status Query::Run() {
  auto row = Step();
  if (!row) return Err(std::move(row).error());
  return base::Ok();
}

std::string Query::TextAt(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text ? std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement_, column)))
              : std::string();
}

int64_t Query::IntAt(int column) const { return sqlite3_column_int64(statement_, column); }

base::Result<std::unique_ptr<Database>> Database::Open(const std::string& path, bool query_only) {
  sqlite3* raw = nullptr;
  const int rc =
      sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Database> db(new Database(raw));
  if (rc != SQLITE_OK) return SqliteError(raw, rc);
  sqlite3_extended_result_codes(raw, 1);
  sqlite3_busy_timeout(raw, kBusyTimeoutMs);
  RETURN_IF_ERROR(
      db->Execute("PRAGMA synchronous=FULL; PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON"));
  if (query_only) RETURN_IF_ERROR(db->Execute("PRAGMA query_only=ON"));
  return db;
}

Database::~Database() {
  for (const auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

Query Database::Prepare(const char* sql) {
  auto& statement = statements_[sql];
  int rc = SQLITE_OK;
  if (!statement)
    rc = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  return Query(db_, statement, rc);
}

base::Status Database::Execute(const std::string& sql) {
  const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return SqliteError(db_, rc);
  return base::Ok();
}

base::Result<std::string> Database::Value(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  const int rc = sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr);
  const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> owner(statement, sqlite3_finalize);
  Query query(db_, statement, rc);
  ASSIGN_OR_RETURN(const bool row, query.Step());
  return row ? query.TextAt(0) : std::string();
}

base::Result<Transaction> Transaction::Begin(Database& db) {
  RETURN_IF_ERROR(db.Prepare("BEGIN IMMEDIATE").Run());
  return Transaction(&db);
}

Transaction::~Transaction() {
  // An error here means that SQLite rolled back by itself (disk full, I/O error), which is what is
  // wanted.
  if (db_) (void)db_->Prepare("ROLLBACK").Run();
}

base::Status Transaction::Commit() {
  RETURN_IF_ERROR(db_->Prepare("COMMIT").Run());
  db_ = nullptr;
  return base::Ok();
}

}  // namespace sless::store
