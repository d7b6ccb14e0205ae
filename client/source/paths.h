#pragma once

#include <string>
#include <string_view>

#include "client/base/result.h"
#include "client/source/source.h"

namespace sless::source {

/// What is wrong with a relative path as part of a source, "" if nothing. `path` has '/' separators
/// and no empty or "." segment.
std::string PathProblem(std::string_view path, const Limits& limits);

/// A name for messages: quoted, bytes that are not printable UTF-8 as \xNN, at most 200 bytes.
std::string ShowPath(std::string_view path);

/// kInvalidArgument "<path>: <why>" with Error.source.file.
tl::unexpected<base::Error> BadFile(std::string_view path, std::string_view why,
                                    base::Code code = base::Code::kInvalidArgument);
/// The same for the entry of an archive, reason "BadArchive"; an empty `path` speaks of the archive
/// as a whole.
tl::unexpected<base::Error> BadArchive(std::string_view path, std::string_view why,
                                       base::Code code = base::Code::kInvalidArgument);

/// "12.3 MiB" for messages.
std::string ShowBytes(uint64_t bytes);

}  // namespace sless::source
