#include "client/base/result.h"

#include <fmt/format.h>

#include <array>

namespace sless::base {
namespace {

struct Name {
  Code code;
  std::string_view name;
};
constexpr std::array kNames{
    Name{Code::kInvalidArgument, "InvalidArgument"},
    Name{Code::kNotFound, "NotFound"},
    Name{Code::kAlreadyExists, "AlreadyExists"},
    Name{Code::kFailedPrecondition, "FailedPrecondition"},
    Name{Code::kAborted, "Aborted"},
    Name{Code::kUnauthenticated, "Unauthenticated"},
    Name{Code::kPermissionDenied, "PermissionDenied"},
    Name{Code::kResourceExhausted, "ResourceExhausted"},
    Name{Code::kTooLarge, "TooLarge"},
    Name{Code::kDeadlineExceeded, "DeadlineExceeded"},
    Name{Code::kCancelled, "Cancelled"},
    Name{Code::kUnavailable, "Unavailable"},
    Name{Code::kUnimplemented, "Unimplemented"},
    Name{Code::kInternal, "Internal"},
};

}  // namespace

std::string_view CodeName(Code code) {
  for (const auto& entry : kNames) {
    if (entry.code == code) return entry.name;
  }
  return "Internal";
}

Code CodeFromName(std::string_view name) {
  for (const auto& entry : kNames) {
    if (entry.name == name) return entry.code;
  }
  return Code::kInternal;
}

std::string ToString(const Error& error) {
  return error.field.empty()
             ? fmt::format("{}: {}", CodeName(error.code), error.message)
             : fmt::format("{}: {}: {}", CodeName(error.code), error.field, error.message);
}

}  // namespace sless::base
