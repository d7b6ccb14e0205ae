#pragma once

// What every driver does alike, so that a driver only keeps rows: keys, versions, pages.

#include <optional>
#include <string>
#include <utility>

#include "client/base/clock.h"
#include "server/store/object_store.h"

namespace sless::store {

/// Kind, namespace and name are set, at most 253 bytes each, without '/' and control characters.
/// Error: kInvalidArgument.
base::Status CheckKey(const api::ObjectKey& key);

/// `object` as it is stored first: uid, generation 1, version, times.
StoredObject MakeNew(StoredObject object, int64_t revision, base::TimePoint now);

/// What Update stores in place of `stored`, with version `revision`; nullopt where nothing would
/// change. Error: kAborted, see ObjectStore::Update.
base::Result<std::optional<StoredObject>> MakeUpdated(const StoredObject& stored, StoredObject next,
                                                      int64_t revision, base::TimePoint now);

/// Error: kAborted where `wanted` is given and is not the stored version.
base::Status CheckVersion(const StoredObject& stored, const std::optional<std::string>& wanted);

/// Namespace and name after which a page begins ("", "" for the first page).
/// Error: kInvalidArgument for a limit out of range, no kind, or a continue_after that is not ours.
base::Result<std::pair<std::string, std::string>> PageStart(const ListQuery& query);
std::string ContinueAfter(const api::ObjectKey& last);
/// A page whose objects have so many bytes takes no more, however few they are.
inline constexpr size_t kMaxPageBytes = 4 << 20;
/// What an object counts of it.
size_t SizeOf(const StoredObject& object);

tl::unexpected<base::Error> NotFound(const api::ObjectKey& key);
tl::unexpected<base::Error> AlreadyExists(const api::ObjectKey& key);

}  // namespace sless::store
