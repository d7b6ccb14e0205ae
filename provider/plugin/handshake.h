#pragma once

// What a plugin host and a plugin tell each other before the first RPC: environment in, one line
// out. Pure functions.

#include <optional>
#include <string>
#include <string_view>

#include "client/base/log.h"

namespace sless::plugin {

/// The one application protocol that is served.
inline constexpr int kProtocolVersion = 6;

/// What a host says through the environment.
struct Environment {
  bool cookie_matches = false;     ///< started by Terraform or OpenTofu, not by a person
  std::string protocol_versions;   ///< "5,6" in any order, "" if not given
  std::string client_certificate;  ///< PEM; "" asks for plaintext
  int min_port = 0;                ///< range for TCP; 0 and 0 mean any port
  int max_port = 0;
  bool names_multiplexing = false;  ///< the host wants the seventh field in the line
  std::string socket_folder;        ///< where the socket must be, "" for our choice
  std::string socket_group;         ///< group that may use the socket, "" for the owner alone
  std::string temp_folder;          ///< TMPDIR, "" if not set
  /// Least level to log; nothing means no log at all. Warnings and errors where no variable speaks
  /// of logs.
  std::optional<base::Level> log_level = base::Level::kWarn;
};

/// Reads the variables for the provider of this name ("sless" looks at TF_LOG_PROVIDER_SLESS).
/// `environment` is an environ array, ended by a null pointer; may be null.
Environment ReadEnvironment(const char* const* environment, std::string_view provider_name);

/// True if the comma list holds `version`, or says nothing. Words that are no numbers are skipped.
bool OffersVersion(std::string_view versions, int version);

/// Where the server listens.
struct Endpoint {
  enum class Network { kUnix, kTcp };
  Network network = Network::kUnix;
  std::string address;  ///< absolute path, or "127.0.0.1:port"
};

/// The line that the host waits for, with its newline. `certificate_der` is the server's
/// certificate, "" for plaintext.
std::string HandshakeLine(const Endpoint& endpoint, std::string_view certificate_der,
                          bool names_multiplexing);

/// What a developer sets to attach a host to a running server: {"<address>":{"Protocol":"grpc",…}}.
/// `address` is the provider's source address ("sless/sless").
std::string ReattachJson(std::string_view address, int pid, const Endpoint& endpoint);

/// The whole text for a developer's terminal.
std::string ReattachText(std::string_view json);

}  // namespace sless::plugin
