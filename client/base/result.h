#pragma once

// The error type of every room: errors are values (docs/decisions/0001).

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

namespace sless::base {

/// What the caller should do about an error, not where it came from. The names are those of gRPC's
/// canonical codes.
enum class Code {
  kInvalidArgument,     ///< the request is wrong whatever the state; fix it
  kNotFound,            ///< no such object
  kAlreadyExists,       ///< an object of that name exists
  kFailedPrecondition,  ///< somebody must fix the state first (a failed build, a missing function)
  kAborted,             ///< somebody else changed it; read again, then retry the change
  kUnauthenticated,     ///< no token or a wrong one
  kPermissionDenied,    ///< known caller, not allowed
  kResourceExhausted,   ///< no room now; retry after a change, not in a loop
  kTooLarge,            ///< a body, header or list is above its limit
  kDeadlineExceeded,    ///< the deadline passed first
  kCancelled,           ///< the caller or a shutdown ended it
  kUnavailable,         ///< not reachable now; retry the call with backoff
  kUnimplemented,       ///< not supported here
  kInternal,            ///< our bug
};

/// The code's stable name in CamelCase, as used in JSON error bodies ("InvalidArgument").
std::string_view CodeName(Code code);
/// The code with this name, or kInternal for a name that is not known.
Code CodeFromName(std::string_view name);

/// Where an error lies in the user's code, and what the code said last.
struct SourceInfo {
  std::string file;                   ///< relative to the function's root, "" if not known
  int line = 0;                       ///< 1-based, 0 if not known
  std::vector<std::string> log_tail;  ///< last log lines, oldest first, at most 30
};

/// An error value. `message` says what was wanted and what was found, without secrets, without a
/// final full stop.
struct Error {
  Code code = Code::kInternal;
  std::string message;
  std::string field;  ///< JSON pointer into the object ("/spec/cron/schedule"), "" if none; becomes
                      ///< the attribute path
  /// stable CamelCase word for programs ("BuildFailed"), "" if the code says enough
  std::string reason;
  SourceInfo source;  ///< filled for failures of user code
};

/// "InvalidArgument: /spec/x: message", for logs and tests.
std::string ToString(const Error& error);

template <class T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

/// Makes the error side of a Result.
inline tl::unexpected<Error> Err(Code code, std::string message, std::string field = "",
                                 std::string reason = "") {
  return tl::unexpected<Error>(
      Error{code, std::move(message), std::move(field), std::move(reason), {}});
}
inline tl::unexpected<Error> Err(Error error) { return tl::unexpected<Error>(std::move(error)); }

/// The success value of Status.
inline Status Ok() { return {}; }

}  // namespace sless::base

#define SLESS_CONCAT_INNER(a, b) a##b
#define SLESS_CONCAT(a, b) SLESS_CONCAT_INNER(a, b)

/// ASSIGN_OR_RETURN(auto x, F()): x = value of F(), or returns F()'s error from this function.
#define ASSIGN_OR_RETURN(decl, expr) \
  SLESS_ASSIGN_OR_RETURN_IMPL(SLESS_CONCAT(result_, __LINE__), decl, expr)
#define SLESS_ASSIGN_OR_RETURN_IMPL(tmp, decl, expr)                               \
  auto tmp = (expr);                                                               \
  if (!tmp) return ::tl::unexpected<::sless::base::Error>(std::move(tmp).error()); \
  decl = std::move(*tmp)

/// RETURN_IF_ERROR(F()): returns F()'s error from this function, if there is one.
#define RETURN_IF_ERROR(expr)                                                                \
  do {                                                                                       \
    auto status_ = (expr);                                                                   \
    if (!status_) return ::tl::unexpected<::sless::base::Error>(std::move(status_).error()); \
  } while (0)
