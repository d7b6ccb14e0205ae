#pragma once

// System calls as errors of this project; for this room only.

#include <string>
#include <string_view>

#include "client/base/fd.h"

namespace sless::artifact {

/// The error of the last system call, "cannot <doing> <path>: …": kResourceExhausted where nothing
/// is left (base::ErrnoCode), else kUnavailable, which a full disk is too.
tl::unexpected<base::Error> SystemError(std::string_view doing, const std::string& path);
/// Makes the entries of a folder durable.
base::Status SyncDirectory(const std::string& path);

}  // namespace sless::artifact
