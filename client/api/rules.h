#pragma once

// What fields may hold beyond their types and the bounds of their Doc: one place for the check at
// plan and the check at the server.
//
// Each …Problem gives the rest of a sentence whose subject is the value ("must begin with \"/\""),
// or "" where nothing is wrong. None holds the value.

#include <string>
#include <string_view>
#include <vector>

namespace sless::api {

inline constexpr size_t kMaxCodeHashBytes = 1024;
inline constexpr size_t kMaxSourcePathBytes = 4096;
inline constexpr size_t kMaxInlineCodeBytes = 512 * 1024;
inline constexpr size_t kMaxVariables = 1000;
inline constexpr size_t kMaxEnvironmentBytes = 128 * 1024;  ///< names and values together
inline constexpr size_t kMaxLabels = 64;
inline constexpr size_t kMaxLabelValueBytes = 256;
inline constexpr size_t kMaxEventBytes = 256 * 1024;  ///< of a job's event and a cron payload

/// At most `max` bytes and no NUL.
std::string TextProblem(std::string_view text, size_t max);

/// "dir/file.function", at most 256 bytes: the last dot divides, folders by "/", the file without
/// its ending.
std::string EntrypointProblem(std::string_view entrypoint);

/// Letters, digits and "_", no digit first; names that begin with SLESS_ are reserved.
std::string VariableNameProblem(std::string_view name);

/// 1 to 128 letters, digits and "-_./".
std::string LabelKeyProblem(std::string_view key);

/// Methods that a trigger may serve. TRACE and CONNECT mean something between proxies, not to a
/// function.
const std::vector<std::string>& HttpMethods();

/// The prefix of an http trigger: at most 512 bytes, begins with "/" and, but for "/" alone, does
/// not end with it; characters that a URL path has unencoded (RFC 3986, pchar); no empty and no dot
/// segments.
std::string HttpPathProblem(std::string_view path);

}  // namespace sless::api
