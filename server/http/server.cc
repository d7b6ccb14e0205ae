#include "server/http/server.h"

#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <condition_variable>
#include <set>

#include "client/base/strings.h"
#include "server/http/io_pool_impl.h"
#include "server/http/listener_impl.h"
#include "server/http/session.h"

namespace sless::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// For a connection above the limit: it is not read from.
std::string FullAnswer() {
  auto response = Response::FromError(
      {base::Code::kUnavailable, "too many connections are open; try again", "", "Overloaded", {}});
  response.headers.Add("X-Request-Id", base::RandomHex(16));
  return WriteResponseHead(response.status, response.headers, Framing::kLength,
                           response.body.size(), false) +
         response.body;
}

std::string What(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "unknown exception";
  }
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

  void Serve(Listener::Impl& listener);
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

  // For stopping, which comes from another thread.
  std::mutex mutex;
  std::condition_variable ended;
  std::set<std::shared_ptr<Session>> sessions;
  bool accepting = false;
  bool stopped = false;
};

void Server::Impl::Serve(Listener::Impl& listener) {
  address = listener.address;
  socket_path = std::exchange(listener.socket_path, "");
  std::visit([this](auto& acceptor) { Serve(std::move(acceptor)); }, listener.acceptor);
}

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
    const auto full = FullAnswer();
    error_code ignored;
    socket.non_blocking(true, ignored);
    socket.send(asio::buffer(full), 0, ignored);
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
          self->shared->log.Error("a connection ended in an exception", {{"what", What(error)}});
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
  ASSIGN_OR_RETURN(const auto listener, Listener::Open(deps.io, options.listen));
  return Start(*listener, std::move(options), std::move(router), deps);
}

std::unique_ptr<Server> Server::Start(Listener& listener, ServerOptions options, Router router,
                                      Deps deps) {
  auto impl = std::make_shared<Impl>(std::move(options), std::move(router), deps);
  impl->Serve(listener.impl());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::~Server() { Stop({}); }
const std::string& Server::address() const { return impl_->address; }
size_t Server::connections() const { return impl_->shared->open; }
void Server::Stop(std::chrono::milliseconds grace) { impl_->Stop(grace); }

}  // namespace sless::http
