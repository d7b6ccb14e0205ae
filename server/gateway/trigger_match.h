#pragma once

#include <string_view>

#include "client/base/result.h"
#include "server/gateway/serving.h"

namespace sless::gateway {

struct TriggerMatch {
  const HttpRoute* route = nullptr;  ///< null: `error` and `allow` say why
  base::Error error;
  std::string allow;  ///< for 405
};

/// Which trigger lets a request in. `path` is canonical (http::CanonicalPath of what follows
/// /fn/{namespace}/{name}). Of the enabled and disabled triggers whose path is a prefix by whole
/// segments the longest wins, whatever its method or state: a narrower rule is never passed over.
/// Of several with that path those decide that serve the method and are enabled; of these one that
/// wants a token wins over one that wants none, and then the first name.
TriggerMatch MatchTrigger(const FunctionRoute& function, std::string_view method,
                          std::string_view path);

}  // namespace sless::gateway
