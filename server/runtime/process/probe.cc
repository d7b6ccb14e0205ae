#include "server/runtime/process/probe.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace sless::runtime {
namespace {

constexpr std::string_view kRequest =
    "GET /healthz HTTP/1.1\r\nHost: runner\r\nConnection: close\r\n\r\n";
constexpr size_t kMaxAnswer = 1024 * 1024;

}  // namespace

Probe::Probe(const std::string& socket_path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) return;
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return;
  // A unix socket connects at once or not at all; so short a request fits its buffer.
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      send(fd, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) !=
          static_cast<ssize_t>(kRequest.size())) {
    close(fd);
    return;
  }
  fd_ = fd;
}

Probe::~Probe() {
  if (fd_ >= 0) close(fd_);
}

std::optional<ProbeAnswer> Probe::Read() {
  if (fd_ < 0) return ProbeAnswer{};
  char buffer[8192];
  for (;;) {
    const ssize_t n = recv(fd_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::nullopt;
    if (n < 0) return ProbeAnswer{};
    if (n == 0 || text_.size() > kMaxAnswer) break;
    text_.append(buffer, static_cast<size_t>(n));
  }
  if (!text_.starts_with("HTTP/1.1 ")) return ProbeAnswer{};
  const size_t body = text_.find("\r\n\r\n");
  return ProbeAnswer{std::atoi(text_.c_str() + 9),
                     body == std::string::npos ? "" : text_.substr(body + 4)};
}

}  // namespace sless::runtime
