#pragma once

#include <memory>
#include <string>

#include "client/base/clock.h"
#include "server/store/object_store.h"

namespace sless::store {

/// Whether a store that is opened is read from end to end for damage, which takes its time. Without
/// that only what is read later shows it.
enum class Check { kWhole, kNone };

/// Opens or makes the store at `path` (file 0600; a folder that is missing is made with 0700).
/// `clock` outlives the store.
///
/// Several processes may have it open: reads see every commit of all of them at once; Subscribe
/// reports this process's only. Every write is on disk (fsync) before the call returns. A write of
/// another process is waited for, at most 5 s.
///
/// Errors: kFailedPrecondition written by a newer slessd; not a database of slessd; damaged: the
/// text says what to do; kUnavailable cannot be opened or made (permissions, disk full): the text
/// has the path.
base::Result<std::unique_ptr<ObjectStore>> OpenSqlite(const std::string& path,
                                                      const base::Clock& clock,
                                                      Check check = Check::kWhole);

}  // namespace sless::store
