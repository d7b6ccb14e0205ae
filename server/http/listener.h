#pragma once

#include <memory>
#include <string>

#include "client/base/result.h"

namespace sless::http {

class IoPool;

/// A socket that listens: its address is known, and connections wait in the kernel until a Server
/// takes it. Ends with this object; not thread-safe.
class Listener {
 public:
  /// `listen`: "HOST:PORT" (port 0: any free one; "[::1]:80" for IPv6), "unix:/path", or "fd:N" for
  /// a listening unix socket that was passed in. `io` outlives it. Errors: kInvalidArgument
  /// `listen` cannot be read, or the host has no such address; kUnavailable the port or path is in
  /// use, or not allowed (the text says which).
  static base::Result<std::unique_ptr<Listener>> Open(IoPool& io, const std::string& listen);
  ~Listener();

  /// "127.0.0.1:40123" with the real port, or "unix:/path".
  const std::string& address() const;

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  explicit Listener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sless::http
