#include "server/store/sqlite/sqlite_store.h"

#include <array>
#include <mutex>
#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "server/store/change_feed.h"
#include "server/store/rules.h"
#include "server/store/sqlite/database.h"
#include "server/store/sqlite/lending.h"
#include "server/store/sqlite/schema.h"

namespace sless::store {
namespace {

using base::Result;
using base::Status;

constexpr size_t kReaders = 4;

#define SLESS_OBJECT_COLUMNS                                                                   \
  "kind, ns, name, uid, generation, revision, created_at, updated_at, deletion_requested_at, " \
  "annotations, spec, status"

constexpr const char* kGet =
    "SELECT " SLESS_OBJECT_COLUMNS " FROM object WHERE kind=? AND ns=? AND name=?";
constexpr const char* kListAll = "SELECT " SLESS_OBJECT_COLUMNS
                                 " FROM object WHERE kind=? AND (ns, name) > (?, ?) AND name>=? "
                                 "AND name<? ORDER BY ns, name LIMIT ?";
constexpr const char* kListOne =
    "SELECT " SLESS_OBJECT_COLUMNS
    " FROM object WHERE kind=? AND ns=? AND name>? AND name>=? AND name<? ORDER BY name LIMIT ?";
constexpr const char* kPut =
    "INSERT OR REPLACE INTO object(" SLESS_OBJECT_COLUMNS ") VALUES(?,?,?,?,?,?,?,?,?,?,?,?)";
constexpr const char* kDelete = "DELETE FROM object WHERE kind=? AND ns=? AND name=?";
constexpr const char* kNextRevision =
    "UPDATE counter SET revision = revision + 1 WHERE id = 0 RETURNING revision";

std::string AnnotationsText(const api::Metadata& metadata) {
  return metadata.annotations.empty() ? "{}" : base::DumpJson(nlohmann::json(metadata.annotations));
}

Result<StoredObject> ReadRow(const Query& row) {
  StoredObject object;
  object.key = {row.TextAt(0), row.TextAt(1), row.TextAt(2)};
  auto& metadata = object.metadata;
  metadata.ns = object.key.ns;
  metadata.name = object.key.name;
  metadata.uid = row.TextAt(3);
  metadata.generation = row.IntAt(4);
  metadata.resource_version = std::to_string(row.IntAt(5));
  metadata.created_at = row.TextAt(6);
  metadata.updated_at = row.TextAt(7);
  metadata.deletion_requested_at = row.TextAt(8);
  const std::string annotations = row.TextAt(9);
  if (annotations != "{}") {
    ASSIGN_OR_RETURN(const auto json, base::ParseJson(annotations));
    for (const auto& [key, value] : json.items()) {
      if (value.is_string()) metadata.annotations[key] = value.get<std::string>();
    }
  }
  object.spec_json = row.TextAt(10);
  object.status_json = row.TextAt(11);
  return object;
}

Result<std::optional<StoredObject>> Find(Database& db, const api::ObjectKey& key) {
  Query query = db.Prepare(kGet);
  ASSIGN_OR_RETURN(const bool found, query.Text(key.kind).Text(key.ns).Text(key.name).Step());
  if (!found) return std::optional<StoredObject>();
  ASSIGN_OR_RETURN(auto object, ReadRow(query));
  return std::optional<StoredObject>(std::move(object));
}

Status Put(Database& db, const StoredObject& object) {
  const auto& metadata = object.metadata;
  const std::string annotations = AnnotationsText(metadata);
  Query query = db.Prepare(kPut);
  query.Text(object.key.kind)
      .Text(object.key.ns)
      .Text(object.key.name)
      .Text(metadata.uid)
      .Int(metadata.generation);
  query.Int(std::stoll(metadata.resource_version))
      .Text(metadata.created_at)
      .Text(metadata.updated_at);
  query.Text(metadata.deletion_requested_at)
      .Text(annotations)
      .Text(object.spec_json)
      .Text(object.status_json);
  return query.Run();
}

Result<int64_t> NextRevision(Database& db) {
  Query query = db.Prepare(kNextRevision);
  ASSIGN_OR_RETURN(const bool row, query.Step());
  if (!row)
    return base::Err(base::Code::kFailedPrecondition,
                     "the store's revision counter is missing; restore it from a backup");
  const int64_t revision = query.IntAt(0);
  RETURN_IF_ERROR(query.Run());  // the update counts once the statement has ended
  return revision;
}

// Names are compared as bytes, and no UTF-8 text has a byte 0xff.
std::string PrefixEnd(const std::string& prefix) { return prefix + "\xff"; }

class SqliteStore final : public ObjectStore {
 public:
  SqliteStore(std::unique_ptr<Database> writer, const base::Clock& clock)
      : clock_(clock), writer_(std::move(writer)) {}

  Status OpenReaders(const std::string& path) {
    for (auto& reader : readers_) {
      ASSIGN_OR_RETURN(reader, Database::Open(path, true));
      free_readers_.Add(*reader);
    }
    return base::Ok();
  }

  Result<StoredObject> Get(const api::ObjectKey& key) const override {
    return WithReader([&](Database& db) -> Result<StoredObject> {
      ASSIGN_OR_RETURN(auto object, Find(db, key));
      if (!object) return NotFound(key);
      return std::move(*object);
    });
  }

  Result<Page> List(const ListQuery& query) const override {
    ASSIGN_OR_RETURN(const auto start, PageStart(query));
    return WithReader([&](Database& db) -> Result<Page> {
      const std::string end = PrefixEnd(query.name_prefix);
      Query rows = db.Prepare(query.ns.empty() ? kListAll : kListOne);
      rows.Text(query.kind).Text(query.ns.empty() ? start.first : query.ns).Text(start.second);
      rows.Text(query.name_prefix).Text(end).Int(static_cast<int64_t>(query.limit) + 1);
      Page page;
      size_t bytes = 0;
      for (;;) {
        ASSIGN_OR_RETURN(const bool more, rows.Step());
        if (!more) return page;
        if (page.items.size() == query.limit || bytes >= kMaxPageBytes) {
          page.continue_after = ContinueAfter(page.items.back().key);
          return page;
        }
        ASSIGN_OR_RETURN(auto object, ReadRow(rows));
        bytes += SizeOf(object);
        page.items.push_back(std::move(object));
      }
    });
  }

  Result<StoredObject> Create(StoredObject object) override {
    RETURN_IF_ERROR(CheckKey(object.key));
    std::lock_guard lock(write_mutex_);
    ASSIGN_OR_RETURN(auto transaction, Transaction::Begin(*writer_));
    ASSIGN_OR_RETURN(const auto before, Find(*writer_, object.key));
    if (before) return AlreadyExists(object.key);
    ASSIGN_OR_RETURN(const int64_t revision, NextRevision(*writer_));
    object = MakeNew(std::move(object), revision, clock_.Now());
    RETURN_IF_ERROR(Put(*writer_, object));
    RETURN_IF_ERROR(transaction.Commit());
    feed_.Publish({revision, object.key, false});
    return object;
  }

  Result<StoredObject> Update(StoredObject object) override {
    std::lock_guard lock(write_mutex_);
    ASSIGN_OR_RETURN(auto transaction, Transaction::Begin(*writer_));
    ASSIGN_OR_RETURN(auto before, Find(*writer_, object.key));
    if (!before) return NotFound(object.key);
    // Rolled back where nothing changes, so that the number is not used up.
    ASSIGN_OR_RETURN(const int64_t revision, NextRevision(*writer_));
    ASSIGN_OR_RETURN(auto next, MakeUpdated(*before, std::move(object), revision, clock_.Now()));
    if (!next) return std::move(*before);
    RETURN_IF_ERROR(Put(*writer_, *next));
    RETURN_IF_ERROR(transaction.Commit());
    feed_.Publish({revision, next->key, false});
    return std::move(*next);
  }

  Status Delete(const api::ObjectKey& key, std::optional<std::string> resource_version) override {
    std::lock_guard lock(write_mutex_);
    ASSIGN_OR_RETURN(auto transaction, Transaction::Begin(*writer_));
    ASSIGN_OR_RETURN(const auto before, Find(*writer_, key));
    if (!before) return NotFound(key);
    RETURN_IF_ERROR(CheckVersion(*before, resource_version));
    ASSIGN_OR_RETURN(const int64_t revision, NextRevision(*writer_));
    RETURN_IF_ERROR(writer_->Prepare(kDelete).Text(key.kind).Text(key.ns).Text(key.name).Run());
    RETURN_IF_ERROR(transaction.Commit());
    feed_.Publish({revision, key, true});
    return base::Ok();
  }

  std::unique_ptr<Subscription> Subscribe(std::function<void(const Change&)> callback) override {
    return feed_.Subscribe(std::move(callback));
  }

 private:
  // Readers have connections of their own, so that no read waits for a writer's fsync.
  template <class F>
  std::invoke_result_t<F, Database&> WithReader(F&& read) const {
    const Lending<Database>::Lent reader(free_readers_);
    return read(*reader);
  }

  const base::Clock& clock_;
  std::mutex write_mutex_;  // held over commit and callbacks, so that changes are told in order
  std::unique_ptr<Database> writer_;
  std::array<std::unique_ptr<Database>, kReaders> readers_;
  mutable Lending<Database> free_readers_;
  ChangeFeed feed_;
};

}  // namespace

base::Result<std::unique_ptr<ObjectStore>> OpenSqlite(const std::string& path,
                                                      const base::Clock& clock, Check check) {
  RETURN_IF_ERROR(PrepareFile(path));
  ASSIGN_OR_RETURN(auto writer, Database::Open(path, false));
  RETURN_IF_ERROR(PrepareSchema(*writer, path));
  if (check == Check::kWhole) RETURN_IF_ERROR(CheckWhole(*writer, path));
  auto store = std::make_unique<SqliteStore>(std::move(writer), clock);
  RETURN_IF_ERROR(store->OpenReaders(path));
  return store;
}

}  // namespace sless::store
