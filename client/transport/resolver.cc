#include "client/transport/resolver.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <resolv.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

namespace sless::transport {
namespace {

using base::Code;

Address MakeAddress(const void* from, socklen_t size) {
  Address address;
  std::memcpy(&address.storage, from, size);
  address.size = size;
  return address;
}

bool Numeric(const std::string& host, uint16_t port, std::vector<Address>& out) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    out.push_back(MakeAddress(&v4, sizeof v4));
    return true;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  if (inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
    out.push_back(MakeAddress(&v6, sizeof v6));
    return true;
  }
  return false;
}

}  // namespace

struct Resolver::Lookup {
  std::string host;
  std::string port;
  int done_fd = -1;
  std::atomic<bool> done{false};
  int error = 0;  // of getaddrinfo; this and `addresses` are written before `done`
  std::vector<Address> addresses;
  std::jthread thread;

  ~Lookup() {
    if (thread.joinable()) thread.join();
    if (done_fd >= 0) close(done_fd);
  }
  void Run() {
    // These settings are this thread's alone.
    if (res_init() == 0) {
      _res.retrans = 2;
      _res.retry = 2;
    }
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG;
    addrinfo* list = nullptr;
    error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
    for (const addrinfo* item = list; error == 0 && item != nullptr; item = item->ai_next) {
      if (item->ai_addrlen <= sizeof(sockaddr_storage)) {
        addresses.push_back(MakeAddress(item->ai_addr, item->ai_addrlen));
      }
    }
    if (list != nullptr) freeaddrinfo(list);
    done = true;
    const uint64_t one = 1;
    [[maybe_unused]] const auto n = write(done_fd, &one, sizeof one);
  }
};

Resolver::Resolver() = default;
Resolver::~Resolver() = default;

base::Result<std::vector<Address>> Resolver::Resolve(const std::string& host, uint16_t port,
                                                     Wait& wait) {
  std::vector<Address> addresses;
  if (Numeric(host, port, addresses)) return addresses;
  if (host == "localhost") {  // RFC 6761: never asked of a name server
    Numeric("127.0.0.1", port, addresses);
    Numeric("::1", port, addresses);
    return addresses;
  }
  given_up_.With(
      [](auto& list) { list.remove_if([](const auto& lookup) { return lookup->done.load(); }); });

  const auto lookup = std::make_shared<Lookup>();
  lookup->host = host;
  lookup->port = std::to_string(port);
  lookup->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (lookup->done_fd < 0)
    return wait.Fail(Code::kUnavailable, "no file descriptor is left in this process");
  try {
    lookup->thread = std::jthread([state = lookup.get()] { state->Run(); });
  } catch (const std::system_error&) {
    return wait.Fail(Code::kUnavailable, "no thread can be started to look up the name");
  }
  const auto ready = wait.For(lookup->done_fd, POLLIN, "looking up the name");
  if (!ready) {
    given_up_.With([&](auto& list) { list.push_back(lookup); });
    return base::Err(ready.error());
  }
  if (lookup->error != 0) {
    return wait.Fail(Code::kUnavailable, fmt::format("cannot look up the name {}: {}", host,
                                                     gai_strerror(lookup->error)));
  }
  if (lookup->addresses.empty()) return wait.Fail(Code::kUnavailable, "the name has no address");
  return std::move(lookup->addresses);
}

}  // namespace sless::transport
