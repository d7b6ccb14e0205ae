#pragma once

#include <sys/socket.h>

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "client/base/guarded.h"
#include "client/base/result.h"
#include "client/transport/wait.h"

namespace sless::transport {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

/// Name lookup with a deadline. IP addresses and "localhost" are answered at once; for the rest the
/// system's resolver blocks in a thread of its own, since it takes neither a deadline nor a stop. A
/// thread whose lookup was given up is joined at the end; it is told to try for 4 s per name server
/// at most.
///
/// Thread safety: Resolve may be called from any thread.
class Resolver {
 public:
  Resolver();
  ~Resolver();

  /// At least one address. Errors: kUnavailable for an unknown name, those of Wait.
  base::Result<std::vector<Address>> Resolve(const std::string& host, uint16_t port, Wait& wait);

 private:
  struct Lookup;
  base::Guarded<std::list<std::shared_ptr<Lookup>>> given_up_;
};

}  // namespace sless::transport
