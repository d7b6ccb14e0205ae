#include "provider/plugin/listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace sless::plugin {
namespace {

using base::Code;
using base::Err;

// Before the next try where the process has no descriptor left for a connection.
constexpr int kPauseMs = 50;

constexpr std::string_view kLoopback = "127.0.0.1";

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

bool Fill(const Endpoint& endpoint, Address& address) {
  if (endpoint.network == Endpoint::Network::kUnix) {
    auto& unix_address = reinterpret_cast<sockaddr_un&>(address.storage);
    if (endpoint.address.size() >= sizeof unix_address.sun_path) return false;
    unix_address.sun_family = AF_UNIX;
    std::memcpy(unix_address.sun_path, endpoint.address.data(), endpoint.address.size());
    address.size = sizeof unix_address;
    return true;
  }
  const std::string_view text = endpoint.address;
  if (!text.starts_with(kLoopback) || text.size() <= kLoopback.size() + 1) return false;
  uint16_t port = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + kLoopback.size() + 1, last, port);
  if (error != std::errc() || end != last) return false;
  auto& tcp_address = reinterpret_cast<sockaddr_in&>(address.storage);
  tcp_address.sin_family = AF_INET;
  tcp_address.sin_port = htons(port);
  tcp_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.size = sizeof tcp_address;
  return true;
}

}  // namespace

base::Result<std::unique_ptr<Listener>> Listener::Open(Endpoint endpoint) {
  const auto failed = [&](std::string_view reason) {
    return Err(Code::kUnavailable,
               fmt::format("the plugin cannot listen on {}: {}", endpoint.address, reason));
  };
  Address address;
  if (!Fill(endpoint, address)) return failed("no address of a socket");
  base::Fd stop_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  base::Fd fd(socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // No SO_REUSEPORT: two providers must never share a port.
  if (!stop_fd || !fd || bind(fd.get(), address.get(), address.size) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return failed(base::ErrnoText());
  }
  if (endpoint.network == Endpoint::Network::kTcp) {
    if (getsockname(fd.get(), address.get(), &address.size) != 0) return failed(base::ErrnoText());
    const auto& bound = reinterpret_cast<const sockaddr_in&>(address.storage);
    endpoint.address = fmt::format("{}:{}", kLoopback, ntohs(bound.sin_port));
  }
  return std::unique_ptr<Listener>(
      new Listener(std::move(endpoint), std::move(fd), std::move(stop_fd)));
}

Listener::~Listener() { Stop(); }

void Listener::Start(Take take) {
  thread_ = std::thread([this, take = std::move(take)] { Run(take); });
}

void Listener::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  // Fails only where the counter is full, and then the thread ends already.
  [[maybe_unused]] const ssize_t n = write(stop_fd_.get(), &one, sizeof one);
  thread_.join();
}

void Listener::Run(const Take& take) {
  std::array<pollfd, 2> fds{{{fd_.get(), POLLIN, 0}, {stop_fd_.get(), POLLIN, 0}}};
  while (true) {
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    const int fd = accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      const int yes = 1;
      if (endpoint_.network == Endpoint::Network::kTcp)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      take(fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      // The connection still waits, and poll would return at once.
      poll(&fds[1], 1, kPauseMs);
    }
  }
}

}  // namespace sless::plugin
