#pragma once

// Files of a log; for this room only.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "client/base/fd.h"

namespace sless::invocations {

/// Kept open: what is read stays the same when the file is renamed or removed. No file where it is
/// not there.
base::Result<base::Fd> OpenForRead(const std::string& path);
/// Made with 0600 where it is not there.
base::Result<base::Fd> OpenForAppend(const std::string& path);
base::Result<uint64_t> SizeOf(const base::Fd& file, const std::string& path);

/// Calls `line` with each line of the first `size` bytes, last line first, until it returns false.
/// The text after the last newline is a line too.
base::Status ReadLinesBackward(const base::Fd& file, uint64_t size,
                               const std::function<bool(std::string_view)>& line);

}  // namespace sless::invocations
