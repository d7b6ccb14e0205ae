#pragma once

// HTTP request ⇄ event and answer, in the shape that users of other clouds know (docs/runner.md).

#include <string>
#include <string_view>

#include "client/base/clock.h"
#include "client/base/result.h"
#include "server/http/message.h"

namespace sless::runner {

/// The event of a request that came in at /http/…; JSON text.
std::string HttpEvent(const http::Request& request, base::TimePoint now);

/// The HTTP answer of a handler's result. An object with "statusCode" describes the answer, any
/// other JSON is the answer. Error: kFailedPrecondition, reason HandlerError: the description is
/// wrong; the message says which part of it.
base::Result<http::Response> HttpAnswer(std::string_view result_json);

}  // namespace sless::runner
