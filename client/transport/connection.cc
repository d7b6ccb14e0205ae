#include "client/transport/connection.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "client/transport/tls.h"

namespace sless::transport {
namespace {

using base::Code;
using What = Connection::Io::What;

std::string Reason(int error) {
  auto text = std::generic_category().message(error);
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') text[0] = static_cast<char>(text[0] + 32);
  return text;
}

std::vector<Address> UnixAddress(const std::string& path) {
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  std::memcpy(un.sun_path, path.data(), std::min(path.size(), sizeof un.sun_path - 1));
  Address address;
  std::memcpy(&address.storage, &un, sizeof un);
  address.size = sizeof un;
  return {address};
}

/// Connects to one address. The answer is a socket, or -1 with `error` set.
base::Result<int> ConnectOne(const Address& address, base::Deadline share, Wait& wait, int& error) {
  const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) {
    error = errno;
    return -1;
  }
  if (address.storage.ss_family != AF_UNIX) {
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  error = 0;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.size) < 0)
    error = errno;
  if (error == EINPROGRESS) {
    const auto got = wait.For(fd, POLLOUT, "connecting", share);
    if (!got) {
      close(fd);
      return base::Err(got.error());
    }
    error = ETIMEDOUT;
    socklen_t size = sizeof error;
    if (*got != 0) getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == 0) return fd;
  close(fd);
  return -1;
}

base::Result<int> ConnectAny(const std::vector<Address>& addresses, Wait& wait) {
  int error = 0;
  for (size_t i = 0; i < addresses.size(); ++i) {
    // An address that swallows packets must leave time for the others.
    base::Deadline share = base::Deadline::Never();
    if (wait.deadline().at != share.at && i + 1 < addresses.size()) {
      share = base::Deadline::After(wait.clock(),
                                    wait.deadline().Left(wait.clock()) / (addresses.size() - i));
    } else if (i + 1 < addresses.size()) {
      share = base::Deadline::After(wait.clock(), std::chrono::seconds(10));
    }
    ASSIGN_OR_RETURN(const int fd, ConnectOne(addresses[i], share, wait, error));
    if (fd >= 0) return fd;
  }
  return wait.Fail(Code::kUnavailable, Reason(error));
}

}  // namespace

base::Result<std::unique_ptr<Connection>> Connection::Open(const Url& url, SSL_CTX* tls,
                                                           Resolver& resolver, Wait& wait) {
  std::vector<Address> addresses;
  if (url.unix_path.empty()) {
    ASSIGN_OR_RETURN(addresses, resolver.Resolve(url.host, url.port, wait));
  } else {
    addresses = UnixAddress(url.unix_path);
  }
  ASSIGN_OR_RETURN(const int fd, ConnectAny(addresses, wait));
  std::unique_ptr<Connection> connection(new Connection(fd));
  if (url.tls) RETURN_IF_ERROR(connection->Handshake(url, tls, wait));
  return connection;
}

Connection::~Connection() {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    SSL_shutdown(ssl_);  // says good-bye if there is room to; nobody waits for the answer
    ERR_clear_error();
    SSL_free(ssl_);
  }
  close(fd_);
}

base::Status Connection::Handshake(const Url& url, SSL_CTX* tls, Wait& wait) {
  auto made = NewClientSsl(tls, fd_, url.host);
  if (!made) return wait.Fail(Code::kInternal, made.error().message);
  ssl_ = *made;
  for (;;) {
    ERR_clear_error();
    const int result = SSL_connect(ssl_);
    if (result == 1) {
      const auto problem = CertificateNameProblem(ssl_, url.host);
      return problem.empty() ? base::Ok() : wait.Fail(Code::kFailedPrecondition, problem);
    }
    const auto io = TlsOutcome(result);
    if (io.what == What::kWantRead || io.what == What::kWantWrite) {
      const short events = io.what == What::kWantRead ? POLLIN : POLLOUT;
      RETURN_IF_ERROR(wait.For(fd_, events, "in the TLS handshake"));
      continue;
    }
    if (const auto problem = CertificateProblem(ssl_); !problem.empty()) {
      return wait.Fail(Code::kFailedPrecondition, problem);
    }
    if (io.what == What::kEnd) {
      return wait.Fail(Code::kUnavailable, "the connection was closed in the TLS handshake");
    }
    return wait.Fail(Code::kUnavailable, fmt::format("TLS handshake failed: {}", io.why));
  }
}

Connection::Io Connection::TlsOutcome(int result) {
  switch (SSL_get_error(ssl_, result)) {
    case SSL_ERROR_WANT_READ:
      return {What::kWantRead, 0, ""};
    case SSL_ERROR_WANT_WRITE:
      return {What::kWantWrite, 0, ""};
    case SSL_ERROR_ZERO_RETURN:
      return {What::kEnd, 0, ""};
    case SSL_ERROR_SYSCALL:
      return {What::kLost, 0, errno != 0 ? Reason(errno) : "the connection was closed"};
    default:
      return {What::kLost, 0, TlsErrorText()};
  }
}

Connection::Io Connection::Read(char* out, size_t size) {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    errno = 0;
    size_t got = 0;
    const int result = SSL_read_ex(ssl_, out, size, &got);
    return result == 1 ? Io{What::kBytes, got, ""} : TlsOutcome(result);
  }
  for (;;) {
    const ssize_t n = recv(fd_, out, size, 0);
    if (n > 0) return {What::kBytes, static_cast<size_t>(n), ""};
    if (n == 0) return {What::kEnd, 0, ""};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {What::kWantRead, 0, ""};
    return {What::kLost, 0, Reason(errno)};
  }
}

Connection::Io Connection::Write(const char* data, size_t size) {
  if (ssl_ != nullptr) {
    ERR_clear_error();
    errno = 0;
    size_t put = 0;
    const int result = SSL_write_ex(ssl_, data, size, &put);
    return result == 1 ? Io{What::kBytes, put, ""} : TlsOutcome(result);
  }
  for (;;) {
    const ssize_t n = send(fd_, data, size, MSG_NOSIGNAL);
    if (n >= 0) return {What::kBytes, static_cast<size_t>(n), ""};
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {What::kWantWrite, 0, ""};
    return {What::kLost, 0, Reason(errno)};
  }
}

bool Connection::IdleAndAlive() {
  // Also takes in what TLS says between answers (session tickets), which is no sign of an end.
  char byte;
  return Read(&byte, 1).what == What::kWantRead;
}

}  // namespace sless::transport
