#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/http/head_writer.h"
#include "server/http/signal.h"
#include "server/http/stream.h"
#include "server/http/workers.h"

namespace sless::http {

/// What all sessions of a server share.
struct Shared {
  ServerOptions options;
  Router router;
  base::Logger& log;
  observe::Family<observe::Counter>& requests;
  observe::Family<observe::Histogram>& durations;
  observe::Gauge& connections;
  Workers workers;
  std::atomic<bool> stopping{false};
  std::atomic<size_t> open{0};
};

class StreamRoute final : public StreamHandlerBase {
 public:
  explicit StreamRoute(StreamHandler handler) : handler_(std::move(handler)) {}
  Task<void> Run(Exchange& exchange) const { return handler_(exchange); }

 private:
  StreamHandler handler_;
};

using Socket = boost::asio::generic::stream_protocol::socket;
using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;

/// One connection: reads requests one after the other and answers each. Everything happens on the
/// thread of its I/O loop.
class Session final : public Exchange, public std::enable_shared_from_this<Session> {
 public:
  Session(std::shared_ptr<Shared> shared, Socket socket, std::string peer);
  ~Session() override;

  Task<void> Run();
  /// From any thread: ends an idle connection, and a busy one after its answer (a long poll answers
  /// at once); `now`: closes it.
  void PostEnd(bool now);
  /// From the I/O thread: closes whatever is running.
  void Close();

  const Request& request() const override { return request_; }
  std::optional<uint64_t> body_length() const override;
  Task<base::Result<std::string_view>> ReadBody(
      std::chrono::steady_clock::time_point until =
          std::chrono::steady_clock::time_point::max()) override;
  Task<base::Status> Respond(Response response) override;
  Task<base::Status> StartResponse(Response head, std::optional<uint64_t> length) override;
  Task<base::Status> WriteBody(std::string_view bytes) override;
  Task<base::Status> FinishBody() override;
  void Abort() override;
  Task<void> OnWorker(std::function<void()> work) override;

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::buffer_body>;

  // session.cc: the connection
  Task<bool> ReadHead();
  Task<bool> AwaitFirstByte();
  Task<void> RefuseHead(boost::system::error_code error);
  std::optional<Response> TakeHead();
  Task<void> ServeOne();
  Task<void> LingeringClose();
  void Finish();
  void Drain();
  // session_body.cc: reading and writing
  Task<base::Status> SendContinue();
  Task<base::Status> Write(std::string_view bytes);
  void WatchForClose();
  base::Status CheckBody() const;
  // session_handlers.cc: the handler forms
  Task<void> Dispatch(const Router::Route& route);
  Task<bool> PassesGuard(const Router::Route& route);
  Task<bool> ReadWholeBody();
  Task<void> RunPlain(const Router::Route& route, const Handler& handler);
  Task<void> RunUpload(const UploadHandler& handler);
  Task<void> RunDeferred(const Router::Route& route, const DeferredHandler& handler);
  Task<void> RunStream(const StreamRoute& route);
  Task<Response> LongPoll(Wait wait);
  Task<bool> TryOnWorker(std::function<void()> work);

  std::shared_ptr<Shared> shared_;
  Stream stream_;
  std::string peer_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::vector<char> chunk_;
  bool first_ = true;
  bool idle_ = true;
  bool closing_ = false;  ///< the connection ends after this answer
  bool watching_ = false;

  // of the current request
  Request request_;
  std::stop_source gone_;
  std::shared_ptr<Signal> wake_;
  size_t max_body_ = 0;
  uint64_t body_read_ = 0;
  std::chrono::steady_clock::duration body_took_{};  ///< waiting for the client
  bool expects_continue_ = false;
  bool quiet_ = false;
  int status_ = 0;  ///< of the answer, 0 before it began
  bool answered_ = false;
  Framing framing_ = Framing::kNone;
  bool drop_body_ = false;
  uint64_t sent_ = 0;
  std::chrono::steady_clock::time_point began_;
};

}  // namespace sless::http
