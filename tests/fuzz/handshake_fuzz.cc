// The environment of a plugin: a NAME=VALUE in each line; and Go durations.

#include <algorithm>

#include "client/base/strings.h"
#include "provider/framework/timeouts.h"
#include "provider/plugin/handshake.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {

std::vector<std::string> Seeds() {
  return {
      "PLUGIN_MIN_PORT=10000\nPLUGIN_MAX_PORT=25000\nPLUGIN_PROTOCOL_VERSIONS=5,6\nPLUGIN_"
      "MULTIPLEX_GRPC=true\nTF_LOG=JSON\n",
      "TF_LOG_PROVIDER_SLESS=trace\nTF_LOG_PROVIDER=OFF\nPLUGIN_UNIX_SOCKET_DIR=/tmp/"
      "x\nPLUGIN_UNIX_SOCKET_GROUP=20\nTMPDIR=/tmp\n",
      "PLUGIN_CLIENT_CERT=-----BEGIN "
      "CERTIFICATE-----\nPLUGIN_PROTOCOL_VERSIONS=,,6x,99999999999999999999\n=\nX\n",
      "1h30m",
      "1.5s",
      "300ms",
      "-1.5h",
      "2562047h47m16.854775807s",
      ".5us",
      "9223372036854775807ns"};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  std::vector<std::string> lines;
  for (fuzz::Parts parts(fuzz::Text(data, size)); !parts.Rest().empty();)
    lines.emplace_back(parts.Line());
  std::vector<const char*> environment;
  for (const auto& line : lines) environment.push_back(line.c_str());
  environment.push_back(nullptr);
  const auto read = plugin::ReadEnvironment(environment.data(), "sless");
  fuzz::Require(read.min_port >= 0 && read.max_port <= 65535 && read.min_port <= read.max_port,
                "the range of ports is one");
  (void)plugin::OffersVersion(read.protocol_versions, 6);
  const auto line = plugin::HandshakeLine({plugin::Endpoint::Network::kUnix, "/tmp/x.sock"},
                                          read.client_certificate, read.names_multiplexing);
  fuzz::Require(std::count(line.begin(), line.end(), '\n') == 1 && line.back() == '\n',
                "the handshake is one line");

  const auto text = fuzz::Text(data, size);
  if (const auto duration = framework::ParseDuration(text); !duration) {
    fuzz::Require(!base::IsUtf8(text) || base::IsUtf8(duration.error().message),
                  "an error's text is UTF-8 where the input is");
  }
  return 0;
}
