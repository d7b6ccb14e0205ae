#pragma once

// A health probe of a runner that blocks nobody.

#include <optional>
#include <string>

namespace sless::runtime {

struct ProbeAnswer {
  int status = 0;  ///< HTTP status; 0: nobody answered
  std::string body;
};

/// One GET /healthz over a unix socket. Not thread-safe.
class Probe {
 public:
  explicit Probe(const std::string& socket_path);
  ~Probe();
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;
  /// To poll for input; -1 where it failed at once.
  int fd() const { return fd_; }
  /// Reads what is there; the answer once it is complete.
  std::optional<ProbeAnswer> Read();

 private:
  int fd_ = -1;
  std::string text_;
};

}  // namespace sless::runtime
