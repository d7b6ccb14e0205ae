#pragma once

#include <string>

#include "client/base/result.h"
#include "server/store/sqlite/database.h"

namespace sless::store {

/// The schema that this program reads and writes.
inline constexpr int kSchemaVersion = 1;

/// Makes the file (0600) and its folder (0700) where they are missing, and takes others'
/// permissions off a file that is there.
base::Status PrepareFile(const std::string& path);

/// Brings an open database to kSchemaVersion in WAL mode; checks that it is ours and not newer.
base::Status PrepareSchema(Database& db, const std::string& path);

/// Reads all of it; nobody waits meanwhile. Error: kFailedPrecondition, it is damaged.
base::Status CheckWhole(Database& db, const std::string& path);

}  // namespace sless::store
