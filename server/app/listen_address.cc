#include "server/app/listen_address.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace sless::app {
namespace {

using base::Code;
using base::Err;

}  // namespace

base::Result<std::string> ResolvePort(const std::string& listen) {
  const auto colon = listen.rfind(':');
  if (colon == std::string::npos || listen.substr(colon + 1) != "0" || listen.starts_with("unix:"))
    return listen;
  auto host = listen.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), "0", &hints, &found);
      error != 0) {
    return Err(Code::kInvalidArgument,
               fmt::format("listen: want HOST:PORT, got \"{}\": {}", listen, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, freeaddrinfo);
  const int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    const int why = errno;
    if (fd >= 0) close(fd);
    return Err(Code::kUnavailable,
               fmt::format("cannot listen on {}: {}", listen, std::strerror(why)));
  }
  close(fd);
  const auto port = bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6&>(bound).sin6_port
                                                : reinterpret_cast<sockaddr_in&>(bound).sin_port;
  return fmt::format("{}:{}", listen.substr(0, colon), ntohs(port));
}

std::string UrlOfAddress(const std::string& address) {
  const auto colon = address.rfind(':');
  const auto host = address.substr(0, colon);
  const bool any = host.empty() || host == "0.0.0.0" || host == "[::]";
  return "http://" +
         (any && colon != std::string::npos ? "127.0.0.1" + address.substr(colon) : address);
}

}  // namespace sless::app
