#pragma once

// SQLite without its sharp edges: connections, cached statements, errors as values. The only user
// of <sqlite3.h>.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace sless::store {

/// A prepared statement in use; reset when it goes. Errors are kept and come out of the next Step.
class Query {
 public:
  Query(sqlite3* db, sqlite3_stmt* statement, int prepare_error)
      : db_(db), statement_(statement), error_(prepare_error) {}
  ~Query();
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// Binds the next parameter. The text must live until the query ends.
  Query& Text(std::string_view value);
  Query& Int(int64_t value);

  /// True: a row is there; false: the end.
  base::Result<bool> Step();
  /// Runs a statement that gives no rows.
  base::Status Run();
  std::string TextAt(int column) const;
  int64_t IntAt(int column) const;

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_;
  int error_;
  int next_parameter_ = 1;
};

/// One connection. Not thread-safe.
class Database {
 public:
  /// `query_only`: writes through it are refused.
  static base::Result<std::unique_ptr<Database>> Open(const std::string& path, bool query_only);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Prepared once per literal; `sql` must live as long as the connection, and one query at a time
  /// may use it.
  Query Prepare(const char* sql);
  /// Runs statements that are not worth caching.
  base::Status Execute(const std::string& sql);
  /// First column of the first row of `sql`, "" if there is none.
  base::Result<std::string> Value(const std::string& sql);

 private:
  explicit Database(sqlite3* db) : db_(db) {}
  sqlite3* db_;
  std::map<const char*, sqlite3_stmt*> statements_;
};

/// BEGIN IMMEDIATE … COMMIT; rolled back unless Commit succeeded.
class Transaction {
 public:
  static base::Result<Transaction> Begin(Database& db);
  Transaction(Transaction&& other) noexcept : db_(std::exchange(other.db_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  base::Status Commit();

 private:
  explicit Transaction(Database* db) : db_(db) {}
  Database* db_;
};

}  // namespace sless::store
