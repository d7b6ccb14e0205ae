#include "server/http/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/http/io_pool_impl.h"
#include "server/http/listener_impl.h"

namespace sless::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Tcp = Listener::Impl::Tcp;
using Local = Listener::Impl::Local;
constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kFd = "fd:";

base::Status CannotListen(const std::string& listen, const error_code& error) {
  return base::Err(base::Code::kUnavailable,
                   fmt::format("cannot listen on {}: {}", listen, error.message()));
}

base::Result<Tcp::endpoint> ParseEndpoint(asio::io_context& loop, const std::string& listen) {
  const auto bad = [&](std::string_view why) {
    return base::Err(
        base::Code::kInvalidArgument,
        fmt::format("listen address \"{}\": {}; want HOST:PORT or unix:/path", listen, why));
  };
  const auto colon = listen.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad("no host or no port");
  auto host = listen.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const auto port = listen.substr(colon + 1);
  if (port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535) {
    return bad("the port must be a number from 0 to 65535");
  }
  error_code error;
  Tcp::resolver resolver(loop);
  const auto found =
      resolver.resolve(host, port, Tcp::resolver::passive | Tcp::resolver::numeric_service, error);
  if (error || found.empty()) return bad(error.message());
  return found.begin()->endpoint();
}

// The path of a server that is gone stays behind; one that answers is in use.
bool IsStaleSocket(asio::io_context& loop, const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  Local::socket probe(loop);
  error_code error;
  probe.connect(Local::endpoint(path), error);
  return error == asio::error::connection_refused;
}

}  // namespace

Listener::Impl::~Impl() {
  if (!socket_path.empty()) ::unlink(socket_path.c_str());
}

base::Status Listener::Impl::OpenTcp(asio::io_context& loop, const std::string& listen) {
  ASSIGN_OR_RETURN(const auto endpoint, ParseEndpoint(loop, listen));
  auto& tcp = acceptor.emplace<Tcp::acceptor>(loop);
  error_code error;
  tcp.open(endpoint.protocol(), error);
  if (!error) tcp.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) tcp.bind(endpoint, error);
  if (!error) tcp.listen(asio::socket_base::max_listen_connections, error);
  if (error) return CannotListen(listen, error);
  const auto bound = tcp.local_endpoint();
  address = fmt::format(fmt::runtime(bound.address().is_v6() ? "[{}]:{}" : "{}:{}"),
                        bound.address().to_string(), bound.port());
  return base::Ok();
}

base::Status Listener::Impl::OpenPath(asio::io_context& loop, const std::string& listen) {
  const auto path = listen.substr(kUnix.size());
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return base::Err(base::Code::kInvalidArgument,
                     fmt::format("socket path is longer than {} bytes: {}",
                                 sizeof(sockaddr_un::sun_path) - 1, path));
  }
  if (IsStaleSocket(loop, path)) ::unlink(path.c_str());
  auto& local = acceptor.emplace<Local::acceptor>(loop);
  error_code error;
  local.open(Local(), error);
  if (!error) local.bind(Local::endpoint(path), error);
  // Nobody can connect before it listens. Not by umask: other threads make files.
  if (!error && ::chmod(path.c_str(), 0600) != 0)
    error.assign(errno, boost::system::system_category());
  if (!error) local.listen(asio::socket_base::max_listen_connections, error);
  if (error) return CannotListen(listen, error);
  address = listen;
  socket_path = path;
  return base::Ok();
}

base::Status Listener::Impl::TakeDescriptor(asio::io_context& loop, const std::string& listen) {
  const int fd = std::atoi(listen.c_str() + kFd.size());
  auto& local = acceptor.emplace<Local::acceptor>(loop);
  error_code error;
  if (fd > 2 && ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) {
    local.assign(Local(), fd, error);
  } else {
    error = asio::error::bad_descriptor;
  }
  if (error) return CannotListen(listen, error);
  address = listen;
  return base::Ok();
}

base::Result<std::unique_ptr<Listener>> Listener::Open(IoPool& io, const std::string& listen) {
  auto& loop = io.impl().loops[0]->context;
  auto impl = std::make_unique<Impl>(loop);
  RETURN_IF_ERROR(listen.starts_with(kUnix) ? impl->OpenPath(loop, listen)
                  : listen.starts_with(kFd) ? impl->TakeDescriptor(loop, listen)
                                            : impl->OpenTcp(loop, listen));
  return std::unique_ptr<Listener>(new Listener(std::move(impl)));
}

Listener::Listener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Listener::~Listener() = default;
const std::string& Listener::address() const { return impl_->address; }

}  // namespace sless::http
