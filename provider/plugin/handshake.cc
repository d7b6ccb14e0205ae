#include "provider/plugin/handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "client/base/strings.h"

namespace sless::plugin {
namespace {

constexpr std::string_view kCookieName = "TF_PLUGIN_MAGIC_COOKIE";
constexpr std::string_view kCookieValue =
    "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2";

using Variables = std::map<std::string_view, std::string_view>;

Variables Index(const char* const* environment) {
  Variables variables;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view entry(*environment);
    const size_t equals = entry.find('=');
    // The first of two entries of one name counts, as for getenv.
    if (equals != std::string_view::npos) {
      variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
  }
  return variables;
}

std::string Get(const Variables& variables, std::string_view name) {
  const auto it = variables.find(name);
  return it == variables.end() ? std::string() : std::string(it->second);
}

std::optional<int> ToInt(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

int Port(std::string_view text) {
  const int port = ToInt(text).value_or(0);
  return port > 0 && port <= 65535 ? port : 0;
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper)
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

// The host hides what its own variables do not ask for, so the most verbose of them is what
// somebody may read.
std::optional<base::Level> LogLevel(const Variables& variables, std::string_view provider_name) {
  std::optional<base::Level> level;
  bool spoken = false;
  for (const std::string& name : {std::string("TF_LOG"), std::string("TF_LOG_PROVIDER"),
                                  "TF_LOG_PROVIDER_" + Upper(provider_name)}) {
    const std::string word = Upper(Get(variables, name));
    if (word.empty()) continue;
    spoken = true;
    if (word == "OFF") continue;
    // JSON means trace in another form, and hosts take a word that they do not know as trace.
    const base::Level asked = base::ParseLevel(word, base::Level::kTrace);
    level = level ? std::min(*level, asked) : asked;
  }
  return spoken ? level : base::Level::kWarn;
}

}  // namespace

Environment ReadEnvironment(const char* const* environment, std::string_view provider_name) {
  const Variables variables = Index(environment);
  Environment result;
  result.cookie_matches = Get(variables, kCookieName) == kCookieValue;
  result.protocol_versions = Get(variables, "PLUGIN_PROTOCOL_VERSIONS");
  result.client_certificate = Get(variables, "PLUGIN_CLIENT_CERT");
  result.min_port = Port(Get(variables, "PLUGIN_MIN_PORT"));
  result.max_port = Port(Get(variables, "PLUGIN_MAX_PORT"));
  if (result.min_port == 0 || result.max_port < result.min_port)
    result.min_port = result.max_port = 0;
  result.names_multiplexing = variables.count("PLUGIN_MULTIPLEX_GRPC") > 0;
  result.socket_folder = Get(variables, "PLUGIN_UNIX_SOCKET_DIR");
  result.socket_group = Get(variables, "PLUGIN_UNIX_SOCKET_GROUP");
  result.temp_folder = Get(variables, "TMPDIR");
  result.log_level = LogLevel(variables, provider_name);
  return result;
}

bool OffersVersion(std::string_view versions, int version) {
  if (base::Trim(versions).empty()) return true;
  for (const std::string& word : base::Split(versions, ',')) {
    if (ToInt(base::Trim(word)) == version) return true;
  }
  return false;
}

namespace {
std::string_view NetworkName(const Endpoint& endpoint) {
  return endpoint.network == Endpoint::Network::kUnix ? "unix" : "tcp";
}
}  // namespace

std::string HandshakeLine(const Endpoint& endpoint, std::string_view certificate_der,
                          bool names_multiplexing) {
  std::string certificate = base::Base64Encode(certificate_der);
  // The host decodes without padding and refuses '='.
  while (certificate.ends_with('=')) certificate.pop_back();
  return fmt::format("1|{}|{}|{}|grpc|{}{}\n", kProtocolVersion, NetworkName(endpoint),
                     endpoint.address, certificate, names_multiplexing ? "|false" : "");
}

std::string ReattachJson(std::string_view address, int pid, const Endpoint& endpoint) {
  nlohmann::ordered_json server;
  server["Protocol"] = "grpc";
  server["ProtocolVersion"] = kProtocolVersion;
  server["Pid"] = pid;
  // Test: the host neither shuts the server down nor kills it.
  server["Test"] = true;
  server["Addr"]["Network"] = NetworkName(endpoint);
  server["Addr"]["String"] = endpoint.address;
  nlohmann::ordered_json all;
  all[std::string(address)] = std::move(server);
  return all.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string ReattachText(std::string_view json) {
  std::string quoted;
  for (const char c : json) {
    if (c == '\'') {
      quoted += R"('"'"')";
    } else {
      quoted += c;
    }
  }
  return fmt::format(
      "Provider started. To use it, set this variable where terraform or tofu runs (Ctrl-C here "
      "ends it):\n\n"
      "\tTF_REATTACH_PROVIDERS='{}'\n\n",
      quoted);
}

}  // namespace sless::plugin
