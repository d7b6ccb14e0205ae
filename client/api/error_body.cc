#include "client/api/error_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "client/base/strings.h"

namespace sless::api {
namespace {

using base::Code;

struct Row {
  Code code;
  int status;
};
// From status to code the first row with that status wins.
constexpr std::array kTable{
    Row{Code::kInvalidArgument, 400},   Row{Code::kUnauthenticated, 401},
    Row{Code::kPermissionDenied, 403},  Row{Code::kNotFound, 404},
    Row{Code::kAlreadyExists, 409},     Row{Code::kAborted, 412},
    Row{Code::kTooLarge, 413},          Row{Code::kFailedPrecondition, 422},
    Row{Code::kResourceExhausted, 429}, Row{Code::kCancelled, 499},
    Row{Code::kInternal, 500},          Row{Code::kUnimplemented, 501},
    Row{Code::kUnavailable, 503},       Row{Code::kDeadlineExceeded, 504},
};

struct ReasonRow {
  std::string_view reason;
  int status;
};
constexpr std::array kByReason{
    ReasonRow{"BeingDeleted", 409},
    ReasonRow{"BodyTooSlow", 408},
    ReasonRow{"Conflict", 409},
    ReasonRow{"HeadersTooLarge", 431},
    ReasonRow{"MethodNotAllowed", 405},
    ReasonRow{"ReplicaDied", 502},
    ReasonRow{"UnsupportedMediaType", 415},
    ReasonRow{"UnsupportedVersion", 505},
};

Code CodeFromStatus(int status) {
  for (const auto& row : kTable) {
    if (row.status == status) return row.code;
  }
  if (status == 502) return Code::kUnavailable;  // a proxy without its backend
  return status >= 400 && status < 500 ? Code::kInvalidArgument : Code::kInternal;
}

}  // namespace

int HttpStatus(Code code) {
  for (const auto& row : kTable) {
    if (row.code == code) return row.status;
  }
  return 500;
}

int HttpStatus(const base::Error& error) {
  for (const auto& row : kByReason) {
    if (row.reason == error.reason) return row.status;
  }
  return HttpStatus(error.code);
}

std::string ErrorBody(const base::Error& error) {
  nlohmann::ordered_json body{{"code", base::CodeName(error.code)}, {"message", error.message}};
  if (!error.field.empty()) body["field"] = error.field;
  if (!error.reason.empty()) body["reason"] = error.reason;
  if (!error.source.file.empty()) body["file"] = error.source.file;
  if (error.source.line > 0) body["line"] = error.source.line;
  if (!error.source.log_tail.empty()) body["logTail"] = error.source.log_tail;
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

base::Error ErrorFromBody(int http_status, std::string_view body) {
  base::Error error{CodeFromStatus(http_status), "", "", "", {}};
  const auto json = base::ParseJson(body);
  if (json && json->is_object() && json->contains("code") && (*json)["code"].is_string()) {
    const auto text = [&](const char* name) {
      const auto it = json->find(name);
      return it != json->end() && it->is_string() ? it->get<std::string>() : std::string();
    };
    error.code = base::CodeFromName(text("code"));
    error.message = text("message");
    error.field = text("field");
    error.reason = text("reason");
    error.source.file = text("file");
    if (const auto it = json->find("line"); it != json->end() && it->is_number_integer()) {
      error.source.line = it->get<int>();
    }
    if (const auto it = json->find("logTail"); it != json->end() && it->is_array()) {
      for (const auto& line : *it) {
        if (line.is_string()) error.source.log_tail.push_back(line.get<std::string>());
      }
    }
    if (!error.message.empty())
      return error;  // an error that says nothing is told as whatever the body is
  }
  const auto shown = base::Trim(body);
  error.message = shown.empty()
                      ? fmt::format("HTTP status {} with an empty body", http_status)
                      : fmt::format("HTTP status {}: {}", http_status, base::Truncate(shown, 200));
  return error;
}

Failure FailureOf(const base::Error& error) {
  constexpr size_t kMaxTail = 30;
  Failure failure;
  failure.reason = error.reason.empty() ? std::string(base::CodeName(error.code)) : error.reason;
  failure.message = error.message;
  failure.file = error.source.file;
  failure.line = error.source.line;
  const auto& tail = error.source.log_tail;
  failure.log_tail.assign(tail.end() - std::min(tail.size(), kMaxTail), tail.end());
  return failure;
}

}  // namespace sless::api
