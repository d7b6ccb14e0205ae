#pragma once

// Folders that code of users wrote in. Nothing here follows a link, needs more than a few
// descriptors for each level, or is kept out by modes. Free functions; a tree that changes
// meanwhile gives a wrong answer and no more.

#include <cstdint>
#include <string>

#include "client/base/fd.h"
#include "client/base/result.h"

namespace sless::build {

/// Whether `path` is a folder itself, no link to one.
bool IsFolder(const std::string& path);
/// The folder itself, to know it again. Error: kInternal: it is none, or cannot be opened.
base::Result<base::Fd> OpenFolder(const std::string& path);
/// Whether `path` is the folder that was opened as `folder`.
bool IsSameFolder(const base::Fd& folder, const std::string& path);

/// What lies below a folder.
struct Extent {
  uint64_t files = 0;    ///< regular ones
  uint64_t bytes = 0;    ///< their sizes
  uint64_t disk = 0;     ///< bytes that all entries take of the disk, at least 4096 each
  bool special = false;  ///< one is no file, folder or link (a socket, …)
};

/// Looks at all below the folder `path`, until `disk` is above `enough`. Folders that their owner
/// may not read or write are made so. Errors: kFailedPrecondition: folders are nested too deep to
/// be a package's; kInternal: one cannot be read.
base::Result<Extent> Measure(const std::string& path, uint64_t enough = UINT64_MAX);

/// Gives what is called `a` the name `b` and the other way round, at once; where the file system
/// cannot, by ExchangeByRenames. False, with errno: each has its name as before.
bool Exchange(const std::string& a, const std::string& b);
/// For a moment nothing is called `b`; uses the name `a`.aside.
bool ExchangeByRenames(const std::string& a, const std::string& b);

/// Removes what is called `path`, a folder with all below it; nothing there is success. Error:
/// kInternal: something stays.
base::Status RemoveTree(const std::string& path);

}  // namespace sless::build
