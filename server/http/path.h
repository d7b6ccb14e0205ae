#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/base/result.h"

namespace sless::http {

/// Splits an absolute path at '/': "/a/b/" is {"a", "b", ""}. Nothing is decoded.
std::vector<std::string_view> PathSegments(std::string_view path);

/// Refuses paths that another program could read as a different one: no leading '/', characters
/// that no path has, broken escapes, NUL, backslashes (plain or escaped), and dot segments, also
/// where escaped dots or slashes hide them. Error: kInvalidArgument.
base::Status CheckPath(std::string_view path);

/// For paths whose segments name things: besides CheckPath no empty segment and no escaped '/'.
base::Status CheckStrictSegment(std::string_view segment);

/// The path as a function's framework may see it: fully decoded, empty segments dropped, always
/// beginning with '/'. Rules about who may call must match on this form, or "/adm%69n" would not be
/// "/admin". `path` has passed CheckPath.
std::string CanonicalPath(std::string_view path);

}  // namespace sless::http
