#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "client/base/clock.h"
#include "client/base/result.h"
#include "server/store/object_store.h"

namespace sless::auth {

/// Who asks.
struct Caller {
  std::string token_name;
};

/// Tells callers by their token. Tokens are cached in memory: a change by this process counts at
/// once, one by another process
/// (`slessd token create` beside a running server) after at most a second where it is new, ten
/// where it was removed.
///
/// Thread safety: Check may be called at the same time from any thread; it reads the store at most
/// once.
class Authenticator {
 public:
  virtual ~Authenticator() = default;

  /// `authorization` is the text of the Authorization header, "" if there was none. Errors:
  /// kUnauthenticated no token, not of our form, or not known: the text says what to send, never
  /// what was sent; kUnavailable the store cannot be read, or too many unknown tokens came within a
  /// second: try again.
  virtual base::Result<Caller> Check(std::string_view authorization) = 0;
};

/// Both outlive the authenticator.
std::unique_ptr<Authenticator> MakeAuthenticator(store::ObjectStore& store,
                                                 const base::Clock& clock);

}  // namespace sless::auth
