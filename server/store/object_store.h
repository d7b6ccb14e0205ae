#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/api/object.h"
#include "client/base/result.h"

namespace sless::store {

/// One object as it is kept: spec and status are JSON texts of the api types.
struct StoredObject {
  api::ObjectKey key;
  api::Metadata metadata;  ///< ns and name repeat the key
  std::string spec_json;
  std::string status_json;
};

struct ListQuery {
  std::string kind;
  std::string ns;              ///< "" means all namespaces
  std::string name_prefix;     ///< "" means all names
  size_t limit = 100;          ///< 1 to 1000
  std::string continue_after;  ///< from Page::continue_after of the page before; "" for the first
};
struct Page {
  std::vector<StoredObject> items;  ///< ordered by namespace, then name; 4 MiB or a little more
  std::string continue_after;       ///< "" at the end
};

/// One write that was committed.
struct Change {
  int64_t revision = 0;  ///< of the whole store, rising
  api::ObjectKey key;
  bool deleted = false;
};

/// Keeps the change callback alive; its end ends the subscription and waits for a running callback.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

/// Keeps wanted and observed state of all kinds, durable before a call returns.
///
/// Thread safety: all methods may be called at the same time from any thread.
/// Every method can fail with kUnavailable (disk full, database locked too long): retry with
/// backoff.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  /// Error: kNotFound.
  virtual base::Result<StoredObject> Get(const api::ObjectKey& key) const = 0;

  /// Error: kInvalidArgument for a limit out of range or a continue_after that is not ours.
  virtual base::Result<Page> List(const ListQuery& query) const = 0;

  /// Stores a new object: sets uid, generation 1, resource_version, created_at, updated_at; returns
  /// it so. Error: kAlreadyExists.
  virtual base::Result<StoredObject> Create(StoredObject object) = 0;

  /// Replaces metadata.annotations, metadata.deletion_requested_at, spec and status. generation
  /// rises by one if spec_json differs, and updated_at is set then. An equal object is no write: it
  /// comes back with its old resource_version. Errors: kNotFound; kAborted where
  /// object.metadata.resource_version is not the stored one, or uid is another one.
  virtual base::Result<StoredObject> Update(StoredObject object) = 0;

  /// Errors: kNotFound; kAborted where `resource_version` is given and not the stored one.
  virtual base::Status Delete(const api::ObjectKey& key,
                              std::optional<std::string> resource_version) = 0;

  /// Calls `callback` after each commit, in order, from the writer's thread. It must not block and
  /// not call the store.
  virtual std::unique_ptr<Subscription> Subscribe(std::function<void(const Change&)> callback) = 0;
};

}  // namespace sless::store
