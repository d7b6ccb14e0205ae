#pragma once

// Code ⇄ HTTP status ⇄ JSON body {"code","message","field","reason","file","line","logTail"}. The
// only such table.

#include <string>

#include "client/api/object.h"
#include "client/base/result.h"

namespace sless::api {

/// 400 for kInvalidArgument, 404, 409, 412 and so on.
int HttpStatus(base::Code code);
/// That of the reason, where HTTP has a status for just this ("MethodNotAllowed": 405), else that
/// of the code.
int HttpStatus(const base::Error& error);
/// The JSON body of an error answer; members that are empty are left out.
std::string ErrorBody(const base::Error& error);
/// Reads an error answer. A body that is not ours (a proxy's page) gives a code chosen by
/// `http_status` and a message that shows its first 200 characters.
base::Error ErrorFromBody(int http_status, std::string_view body);
/// What a status keeps of an error: the code's name where it has no reason, the last 30 lines of
/// its log.
Failure FailureOf(const base::Error& error);

}  // namespace sless::api
