#include "server/http/server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <condition_variable>
#include <set>

#include "server/http/io_pool_impl.h"
#include "server/http/session.h"

namespace sless::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Local = asio::local::stream_protocol;
constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kFd = "fd:";

base::Error CannotListen(const std::string& listen, const error_code& error) {
  return {base::Code::kUnavailable,
          fmt::format("cannot listen on {}: {}", listen, error.message()),
          "",
          "",
          {}};
}

base::Result<tcp::endpoint> ParseEndpoint(asio::io_context& loop, const std::string& listen) {
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
  tcp::resolver resolver(loop);
  const auto found =
      resolver.resolve(host, port, tcp::resolver::passive | tcp::resolver::numeric_service, error);
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

struct Server::Impl : std::enable_shared_from_this<Server::Impl> {
  Impl(ServerOptions options, Router router, Deps deps)
      : io(deps.io.impl()),
        shared(new Shared{options, std::move(router), deps.log,
                          deps.metrics.Counters("sless_http_requests_total",
                                                "HTTP requests answered", {"route", "status"}),
                          deps.metrics.Histograms(
                              "sless_http_request_duration_seconds",
                              "From the head of a request to the end of its answer", {"route"}),
                          deps.metrics.GetGauge("sless_http_connections", "Open connections"),
                          Workers(std::clamp(options.workers, 1, 1024), options.max_queued)}) {}

  base::Status Listen();
  template <class Acceptor>
  void Serve(Acceptor acceptor);
  template <class Acceptor>
  Task<void> AcceptLoop(std::shared_ptr<Acceptor> acceptor);
  void Begin(asio::io_context& loop, Socket socket, std::string peer);
  void Turn(bool close_all);
  void Stop(std::chrono::milliseconds grace);

  IoPool::Impl& io;
  std::shared_ptr<Shared> shared;
  std::string address;
  std::string socket_path;
  std::function<void()> close_acceptor;

  // Sessions by loop, for stopping; each set is guarded since Turn comes from another thread.
  std::mutex mutex;
  std::condition_variable ended;
  std::set<std::shared_ptr<Session>> sessions;
  bool accepting = false;
  bool stopped = false;
};

template <class Acceptor>
void Server::Impl::Serve(Acceptor acceptor) {
  const auto held = std::make_shared<Acceptor>(std::move(acceptor));
  accepting = true;
  close_acceptor = [held] { asio::post(held->get_executor(), [held] { held->close(); }); };
  asio::co_spawn(held->get_executor(), AcceptLoop(held),
                 [self = shared_from_this()](std::exception_ptr) {
                   std::lock_guard lock(self->mutex);
                   self->accepting = false;
                   self->ended.notify_all();
                 });
}

base::Status Server::Impl::Listen() {
  auto& loop = io.loops[0]->context;
  const auto& listen = shared->options.listen;
  error_code error;
  if (listen.starts_with(kUnix)) {
    const auto path = listen.substr(kUnix.size());
    if (path.size() >= sizeof(sockaddr_un::sun_path)) {
      return base::Err(base::Code::kInvalidArgument,
                       fmt::format("socket path is longer than {} bytes: {}",
                                   sizeof(sockaddr_un::sun_path) - 1, path));
    }
    if (IsStaleSocket(loop, path)) ::unlink(path.c_str());
    Local::acceptor acceptor(loop);
    acceptor.open(Local(), error);
    if (!error) acceptor.bind(Local::endpoint(path), error);
    // Nobody can connect before it listens. Not by umask: other threads make files.
    if (!error && ::chmod(path.c_str(), 0600) != 0)
      error.assign(errno, boost::system::system_category());
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (error) return base::Err(CannotListen(listen, error));
    address = listen;
    socket_path = path;
    Serve(std::move(acceptor));
    return base::Ok();
  }
  if (listen.starts_with(kFd)) {
    const int fd = std::atoi(listen.c_str() + kFd.size());
    Local::acceptor acceptor(loop);
    if (fd > 2 && ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0) {
      acceptor.assign(Local(), fd, error);
    } else {
      error = asio::error::bad_descriptor;
    }
    if (error) return base::Err(CannotListen(listen, error));
    address = listen;
    Serve(std::move(acceptor));
    return base::Ok();
  }
  ASSIGN_OR_RETURN(const auto endpoint, ParseEndpoint(loop, listen));
  tcp::acceptor acceptor(loop);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return base::Err(CannotListen(listen, error));
  const auto bound = acceptor.local_endpoint();
  address = fmt::format(fmt::runtime(bound.address().is_v6() ? "[{}]:{}" : "{}:{}"),
                        bound.address().to_string(), bound.port());
  Serve(std::move(acceptor));
  return base::Ok();
}

template <class Acceptor>
Task<void> Server::Impl::AcceptLoop(std::shared_ptr<Acceptor> acceptor) {
  using Protocol = typename Acceptor::protocol_type;
  while (acceptor->is_open()) {
    auto& loop = io.Next();
    typename Protocol::endpoint from;
    typename Protocol::socket socket(loop);
    const auto [error] =
        co_await acceptor->async_accept(socket, from, asio::as_tuple(asio::use_awaitable));
    if (error == asio::error::operation_aborted || !acceptor->is_open()) break;
    if (error) {  // out of file descriptors or a client that is gone again: take a breath
      asio::steady_timer pause(acceptor->get_executor(), std::chrono::milliseconds(20));
      co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
      continue;
    }
    std::string peer = "unix";
    if constexpr (std::is_same_v<Protocol, tcp>) {
      peer = from.address().to_string();
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
    }
    Begin(loop, Socket(std::move(socket)), std::move(peer));
  }
}

void Server::Impl::Begin(asio::io_context& loop, Socket socket, std::string peer) {
  if (shared->open >= shared->options.max_connections) {
    static constexpr std::string_view kFull =
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\nConnection: "
        "close\r\n\r\n";
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.send(asio::buffer(kFull), 0, ignored);
    return;
  }
  auto session = std::make_shared<Session>(shared, std::move(socket), std::move(peer));
  {
    std::lock_guard lock(mutex);
    sessions.insert(session);
    // Accepted beside a Stop whose turn it has missed.
    if (shared->stopping) session->PostEnd(false);
  }
  asio::co_spawn(
      loop, [](std::shared_ptr<Session> s) -> Task<void> { co_await s->Run(); }(session),
      [self = shared_from_this(), session](std::exception_ptr error) {
        if (error) {
          session->Close();
          self->shared->log.Error("a connection ended in an exception", {});
        }
        std::lock_guard lock(self->mutex);
        self->sessions.erase(session);
        self->ended.notify_all();
      });
}

// Tells every session on its own thread to end.
void Server::Impl::Turn(bool close_all) {
  std::lock_guard lock(mutex);
  for (const auto& session : sessions) session->PostEnd(close_all);
}

void Server::Impl::Stop(std::chrono::milliseconds grace) {
  {
    std::lock_guard lock(mutex);
    if (std::exchange(stopped, true)) return;
  }
  shared->stopping = true;
  if (close_acceptor) close_acceptor();
  const auto done = [this] { return sessions.empty() && !accepting; };
  Turn(false);
  {
    std::unique_lock lock(mutex);
    if (ended.wait_for(lock, grace, done)) grace = {};
  }
  Turn(true);
  {
    // Handlers that block are bound by their own deadlines; they were told by request.gone.
    std::unique_lock lock(mutex);
    ended.wait_for(lock, std::chrono::seconds(10), done);
  }
  if (!socket_path.empty()) ::unlink(socket_path.c_str());
}

Server::Server(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

base::Result<std::unique_ptr<Server>> Server::Start(ServerOptions options, Router router,
                                                    Deps deps) {
  auto impl = std::make_shared<Impl>(std::move(options), std::move(router), deps);
  RETURN_IF_ERROR(impl->Listen());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::~Server() { Stop({}); }
const std::string& Server::address() const { return impl_->address; }
size_t Server::connections() const { return impl_->shared->open; }
void Server::Stop(std::chrono::milliseconds grace) { impl_->Stop(grace); }

}  // namespace sless::http
