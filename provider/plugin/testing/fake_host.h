#pragma once

// The host's side of the handshake and of TLS, as Terraform does it.

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/base/result.h"

namespace sless::plugin::testing {

struct HostIdentity {
  std::string key_pem;
  std::string certificate_pem;
};
/// A P-521 key and a self-signed certificate like the one that a host makes for each plugin.
HostIdentity MakeHostIdentity();

/// A channel to `target` ("unix:/path"), plain if `identity` is null; else TLS with `server_der` as
/// the only root.
std::shared_ptr<grpc::Channel> Connect(const std::string& target, const HostIdentity* identity,
                                       const std::string& server_der);

/// The fields of a handshake line. Error: kInvalidArgument: it has another form.
struct Handshake {
  std::string network;
  std::string address;
  std::string certificate_der;
  std::vector<std::string> fields;
};
base::Result<Handshake> ParseHandshake(const std::string& line);

/// A child process with pipes. The destructor kills it if it still runs.
class Child {
 public:
  using Variables = std::map<std::string, std::string>;
  /// Starts `program` with exactly these variables, stdin from the null device.
  static base::Result<std::unique_ptr<Child>> Start(const std::string& program,
                                                    const std::vector<std::string>& arguments,
                                                    const Variables& variables);
  ~Child();
  pid_t pid() const { return pid_; }
  /// One line of stdout with its newline, less at the end of the stream or after `limit`.
  std::string ReadLine(std::chrono::milliseconds limit);
  /// All that comes on stdout (stderr) until its end, or `limit`.
  std::string ReadStdout(std::chrono::milliseconds limit);
  std::string ReadStderr(std::chrono::milliseconds limit);
  /// True and the status of waitpid if it ended within `limit`.
  bool Wait(std::chrono::milliseconds limit, int* status);
  void Signal(int signal) const;

 private:
  Child() = default;
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
  int stdout_ = -1;
  int stderr_ = -1;
};

}  // namespace sless::plugin::testing
