#pragma once

#include <vector>

#include "client/source/source.h"

namespace sless::source {

/// Reads `reader` to its end and sets size and digest of `entry`. Stops once there are more than
/// `max_bytes` bytes: entry.size is above it then, and the digest is not set. `buffer` is scratch
/// space, not empty.
base::Status HashContent(const Reader& reader, uint64_t max_bytes, std::vector<char>& buffer,
                         Entry& entry);

}  // namespace sless::source
