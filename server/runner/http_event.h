#pragma once

// HTTP request ⇄ event and answer, in the shape that users of other clouds know (docs/runner.md).

#include <string>
#include <string_view>

#include "client/base/clock.h"
#include "client/base/result.h"
#include "server/http/message.h"

namespace sless::runner {

/// A body whose text takes more than this as JSON is base64 in its event, as bytes are. Twice the
/// largest body: only control characters take more.
inline constexpr size_t kMaxBodyText = 12 * 1024 * 1024;

/// The event of a request that came in at /http/…; JSON text.
std::string HttpEvent(const http::Request& request, base::TimePoint now);

/// The HTTP answer of a handler's result, which is what base::CheckJson takes. An object with
/// "statusCode" describes the answer, any other JSON is the answer. Error: kFailedPrecondition,
/// reason HandlerError: the description is wrong; the message says which part of it.
base::Result<http::Response> HttpAnswer(std::string_view result_json);

}  // namespace sless::runner
