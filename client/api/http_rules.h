#pragma once

// What an http trigger may say: one place for the check at plan and the check at the server.

#include <string>
#include <string_view>
#include <vector>

namespace sless::api {

/// Methods that a trigger may serve. TRACE and CONNECT mean something between proxies, not to a
/// function.
const std::vector<std::string>& HttpMethods();

/// Why `path` cannot be the prefix of an http trigger; "" if it can. At most 512 bytes, begins with
/// "/" and, but for "/" alone, does not end with it; characters that a URL path has unencoded (RFC
/// 3986, pchar); no empty and no dot segments.
std::string HttpPathProblem(std::string_view path);

}  // namespace sless::api
