#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "server/artifact/artifact_store.h"

namespace sless::artifact {

inline constexpr uint64_t kMaxArtifactBytes = 64ull << 20;

/// Keeps artifacts as <dir>/<namespace>/<64 hex>, files 0600 in folders 0700. What a crash left
/// half written is removed here, so only one process may have `dir` open. At most `max_bytes` for
/// each artifact. Errors: kUnavailable (permissions, disk full): the text has the path.
base::Result<std::unique_ptr<ArtifactStore>> OpenFilesystemStore(
    const std::string& dir, uint64_t max_bytes = kMaxArtifactBytes);

}  // namespace sless::artifact
