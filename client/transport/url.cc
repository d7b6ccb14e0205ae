#include "client/transport/url.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "client/base/strings.h"

namespace sless::transport {
namespace {

using base::Code;
using base::Err;

bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Reads "host", "host:port", "[v6]" or "[v6]:port". The answer is what is wrong, "" if nothing.
std::string ReadAuthority(std::string_view authority, Url& url) {
  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return "the ']' after an IPv6 address is missing";
    url.host = std::string(authority.substr(1, end - 1));
    port = authority.substr(end + 1);
  } else {
    const size_t colon = authority.find(':');
    url.host = std::string(authority.substr(0, colon));
    port = colon == std::string_view::npos ? "" : authority.substr(colon);
  }
  if (url.host.empty()) return "the host is missing";
  for (const char c : url.host) {
    const bool fine = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      c == '-' || c == '.' || c == '_' || c == ':';
    if (!fine) return fmt::format("the host has the character {:?}", std::string_view(&c, 1));
  }
  url.port = url.tls ? 443 : 80;
  if (port.empty()) return "";
  unsigned number = 0;
  const char* const end = port.data() + port.size();
  const auto [stop, error] = std::from_chars(port.data() + 1, end, number);
  if (port.front() != ':' || error != std::errc() || stop != end || number == 0 || number > 65535) {
    return "the port is not a number from 1 to 65535";
  }
  url.port = static_cast<uint16_t>(number);
  return "";
}

}  // namespace

std::string Url::Peer() const {
  if (!unix_path.empty()) return "unix:" + unix_path;
  return !base::Contains(host, ':') ? fmt::format("{}:{}", host, port)
                                    : fmt::format("[{}]:{}", host, port);
}

std::string Url::HostHeader() const {
  if (!unix_path.empty()) return "localhost";
  const auto peer = Peer();
  return port == (tls ? 443 : 80) ? peer.substr(0, peer.rfind(':')) : peer;
}

base::Result<Url> ParseUrl(std::string_view text) {
  const auto bad = [&](std::string_view why) {
    // A user name comes with a password, a query may hold a token: neither is shown.
    const size_t end =
        base::Contains(text, '@') ? std::min(text.find("://"), text.find('@')) : text.find('?');
    return Err(Code::kInvalidArgument,
               fmt::format("want a URL like https://host:port/path, got \"{}\": {}",
                           base::Truncate(text.substr(0, end), 200), why));
  };
  Url url;
  auto rest = text;
  bool unix_socket = false;
  if (TakePrefix(rest, "https://")) {
    url.tls = true;
  } else if (TakePrefix(rest, "http+unix://")) {
    unix_socket = true;
  } else if (!TakePrefix(rest, "http://")) {
    return bad("it does not start with https://, http:// or http+unix://");
  }
  const size_t end = rest.find_first_of("/?#");
  const auto authority = rest.substr(0, end);
  const auto target = end == std::string_view::npos ? std::string_view() : rest.substr(end);
  if (base::Contains(authority, '@')) return bad("user names in URLs are not supported");
  if (unix_socket) {
    const auto path = base::PercentDecode(authority);
    if (!path || path->empty()) return bad("the percent-encoded path of the socket is missing");
    if (path->size() > 107 || base::Contains(*path, '\0')) {
      return bad("the path of the socket is longer than 107 bytes");
    }
    url.unix_path = *path;
  } else if (const auto problem = ReadAuthority(authority, url); !problem.empty()) {
    return bad(problem);
  }
  for (const unsigned char c : target) {
    if (c <= 0x20 || c >= 0x7f || c == '#')
      return bad("the path has a character that must be percent-encoded");
  }
  url.target = target.starts_with('/') ? std::string(target) : "/" + std::string(target);
  return url;
}

}  // namespace sless::transport
