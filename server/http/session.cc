#include "server/http/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>
#include <cmath>

#include "client/base/strings.h"

namespace sless::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

bool IsSaneId(std::string_view id) {
  return !id.empty() && id.size() <= 128 && std::all_of(id.begin(), id.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
  });
}

Response Refusal(base::Code code, std::string message, std::string reason = "BadRequest") {
  return Response::FromError({code, std::move(message), "", std::move(reason), {}});
}

// For the log: what is no path may have a password before its '@'.
std::string_view ShownPath(const Request& request) {
  const std::string_view path = request.path;
  const auto at = request.target.rfind('@');
  if (path.starts_with('/') || at == std::string::npos) return path;
  return path.substr(std::min(at, path.size()));
}

bool IsDigits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return c >= '0' && c <= '9'; });
}

// Host names, addresses and a port; nothing that a proxy could read as two words or as a path.
// Empty is allowed.
bool IsHost(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || std::string_view("-._~:[]%!$&'()*+,;=").find(static_cast<char>(c)) !=
                                  std::string_view::npos;
  });
}

// What Beast's parser lets through though two programs may read it differently (RFC 9112, 6.3
// and 3.2).
std::optional<Response> Ambiguity(const Request& request) {
  const auto bad = [](std::string message) {
    return Refusal(base::Code::kInvalidArgument, std::move(message));
  };
  const auto codings = request.headers.Count("Transfer-Encoding");
  if (codings > 0) {
    if (request.headers.Has("Content-Length"))
      return bad("both Transfer-Encoding and Content-Length");
    if (!request.http11) return bad("Transfer-Encoding in HTTP/1.0");
    if (codings > 1 ||
        !SameNoCase(base::Trim(request.headers.Get("Transfer-Encoding")), "chunked")) {
      return Refusal(base::Code::kUnimplemented,
                     "only the transfer coding \"chunked\" is supported");
    }
  }
  const auto lengths = request.headers.Count("Content-Length");
  if (lengths > 1) return bad("more than one Content-Length");
  if (lengths == 1 && !IsDigits(request.headers.Get("Content-Length")))
    return bad("Content-Length must be one number");
  const auto hosts = request.headers.Count("Host");
  if (hosts > 1 || (hosts == 0 && request.http11)) return bad("exactly one Host header is needed");
  if (!IsHost(request.headers.Get("Host")))
    return bad("the Host header is no host name with an optional port");
  if (request.target.empty() || request.target[0] != '/')
    return bad("the request target must be a path or an http URL");
  if (request.method == "CONNECT") return bad("CONNECT is not supported");
  return std::nullopt;
}

// A client may write the whole URL; its host counts then, not that of the Host header (RFC 9112,
// 3.2.2). A target that is no such URL stays as it is and is refused later.
void TakeAbsoluteForm(Request& request) {
  const std::string_view target = request.target;
  const size_t colon = target.find("://");
  // Without exactly one Host header the request is refused, whatever its target is.
  if (colon == std::string_view::npos || request.headers.Count("Host") != 1) return;
  const auto scheme = target.substr(0, colon);
  if (!SameNoCase(scheme, "http") && !SameNoCase(scheme, "https")) return;
  const auto rest = target.substr(colon + 3);
  const auto host = rest.substr(0, rest.find_first_of("/?"));
  if (host.empty() || !IsHost(host)) return;
  std::string path(rest.substr(host.size()));
  request.headers.Set("Host", std::string(host));
  if (!path.starts_with('/')) path.insert(0, "/");
  request.target = std::move(path);
}

}  // namespace

Session::Session(std::shared_ptr<Shared> shared, Socket socket, std::string peer)
    : shared_(std::move(shared)),
      stream_(std::move(socket)),
      peer_(std::move(peer)),
      buffer_(shared_->options.max_header_bytes + 64 * 1024) {
  ++shared_->open;
  shared_->connections.Add(1);
}

Session::~Session() {
  --shared_->open;
  shared_->connections.Add(-1);
}

Task<void> Session::Run() {
  // GCC 12 miscompiles co_await inside conditions and conditional expressions under its sanitizers:
  // each one is a statement of its own.
  for (;;) {
    const bool more = co_await ReadHead();
    if (!more) break;
    co_await ServeOne();
    if (closing_) break;
  }
  co_await LingeringClose();
  gone_.request_stop();
}

Task<bool> Session::AwaitFirstByte() {
  if (buffer_.size() > 0) co_return true;
  stream_.expires_after(first_ ? shared_->options.header_timeout : shared_->options.idle_timeout);
  const auto [error, n] = co_await stream_.async_read_some(buffer_.prepare(4096), kTuple);
  if (error) co_return false;
  buffer_.commit(n);
  co_return true;
}

Task<bool> Session::ReadHead() {
  idle_ = true;
  if (shared_->stopping && !first_) co_return false;
  const bool began = co_await AwaitFirstByte();
  if (!began) {
    closing_ = false;  // nobody is there: no lingering
    co_return false;
  }
  idle_ = first_ = false;
  parser_.emplace();
  parser_->header_limit(static_cast<uint32_t>(shared_->options.max_header_bytes));
  parser_->body_limit(
      boost::none);  // ours is checked as the body is read, so that the answer can be a 413
  stream_.expires_after(shared_->options.header_timeout);
  const auto [error, n] =
      co_await beast::http::async_read_header(stream_, buffer_, *parser_, kTuple);
  began_ = std::chrono::steady_clock::now();
  if (!error) co_return true;
  co_await RefuseHead(error);
  co_return false;
}

Task<void> Session::RefuseHead(error_code error) {
  namespace http = beast::http;
  if (error.category() != make_error_code(http::error::bad_target).category())
    co_return;  // the connection broke
  if (error == http::error::end_of_stream || error == http::error::partial_message) co_return;
  request_ = {};
  request_.request_id = base::RandomHex(8);
  request_.peer = peer_;
  request_.route = "malformed";
  closing_ = true;
  answered_ = false;
  status_ = 0;
  sent_ = 0;
  Response response;
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    response = Refusal(base::Code::kTooLarge,
                       fmt::format("request line and headers are above the limit of {} bytes",
                                   shared_->options.max_header_bytes),
                       "HeadersTooLarge");
  } else if (error == http::error::bad_version) {
    response = Refusal(base::Code::kUnimplemented, "only HTTP/1.0 and HTTP/1.1 are supported",
                       "UnsupportedVersion");
  } else {
    response = Refusal(base::Code::kInvalidArgument, "the request is not HTTP: " + error.message());
  }
  co_await Respond(std::move(response));
  Finish();
}

std::optional<Response> Session::TakeHead() {
  const auto& head = parser_->get();
  request_ = {};
  request_.method = std::string(head.method_string());
  request_.target = std::string(head.target());
  request_.http11 = head.version() == 11;
  for (const auto& field : head) {
    request_.headers.Add(std::string(field.name_string()), std::string(field.value()));
  }
  TakeAbsoluteForm(request_);
  const auto question = request_.target.find('?');
  request_.path = request_.target.substr(0, question);
  if (question != std::string::npos) request_.query = request_.target.substr(question + 1);
  request_.peer = peer_;
  const auto id = request_.headers.Get("X-Request-Id");
  request_.request_id = IsSaneId(id) ? std::string(id) : base::RandomHex(16);
  gone_ = std::stop_source();
  request_.gone = gone_.get_token();
  closing_ = !parser_->keep_alive() || shared_->stopping;
  expects_continue_ = request_.http11 && SameNoCase(request_.headers.Get("Expect"), "100-continue");
  body_read_ = sent_ = 0;
  body_took_ = {};
  status_ = 0;
  answered_ = drop_body_ = quiet_ = false;
  framing_ = Framing::kNone;
  wake_ = std::make_shared<Signal>(stream_.get_executor());
  return Ambiguity(request_);
}

Task<void> Session::ServeOne() {
  if (auto refusal = TakeHead()) {
    closing_ = true;
    request_.route = "malformed";
    co_await Respond(std::move(*refusal));
    Finish();
    co_return;
  }
  auto match = shared_->router.Find(request_);
  if (match.route == nullptr) {
    request_.route = "none";
    co_await Respond(std::move(match.refusal));
  } else {
    max_body_ = match.route->options.max_body;
    quiet_ = match.route->options.quiet;
    co_await Dispatch(*match.route);
  }
  // A body that nobody read is not skipped over: the connection ends, so that no byte of it is
  // taken for a request.
  if (!parser_->is_done() || !answered_) closing_ = true;
  Finish();
}

void Session::Finish() {
  error_code ignored;  // the socket may be closed: the answer was cut
  if (watching_) stream_.socket().cancel(ignored);
  const auto took = std::chrono::steady_clock::now() - began_;
  const auto seconds = std::chrono::duration<double>(took).count();
  shared_->requests.With({request_.route, std::to_string(status_)}).Add();
  shared_->durations.With({request_.route}).Observe(seconds);
  shared_->log.Log(quiet_ ? base::Level::kDebug : base::Level::kInfo, "request",
                   {{"method", base::Truncate(request_.method, 32)},
                    {"path", base::Truncate(ShownPath(request_), 300)},
                    {"status", status_},
                    {"bytes", sent_},
                    {"took_ms", std::round(seconds * 1e6) / 1e3},
                    {"request_id", request_.request_id},
                    {"peer", request_.peer}});
}

// Closing a socket with unread bytes makes the kernel reset the connection, and the client may lose
// our answer. So where there is more to come of a request, the sending side is shut first, and what
// the client still sends is dropped for a while. Not otherwise: a client that keeps the connection
// for its next request would hold up the end of the server.
Task<void> Session::LingeringClose() {
  error_code ignored;
  const bool more = !parser_ || !parser_->is_done() || buffer_.size() > 0;
  if (closing_ && more && stream_.socket().is_open()) {
    stream_.socket().shutdown(asio::socket_base::shutdown_send, ignored);
    stream_.expires_after(std::chrono::seconds(2));
    chunk_.resize(64 * 1024);
    for (size_t dropped = 0; dropped < 16 * 1024 * 1024;) {
      const auto [error, n] = co_await stream_.async_read_some(asio::buffer(chunk_), kTuple);
      if (error) break;
      dropped += n;
    }
  }
  stream_.socket().close(ignored);
}

void Session::PostEnd(bool now) {
  asio::post(stream_.get_executor(),
             [self = shared_from_this(), now] { now ? self->Close() : self->Drain(); });
}

void Session::Drain() {
  if (idle_) return Close();
  closing_ = true;
  if (wake_) wake_->Set();
}

void Session::Close() {
  error_code ignored;
  stream_.socket().close(ignored);
  gone_.request_stop();
  if (wake_) wake_->Set();
}

void Session::Abort() { Close(); }

}  // namespace sless::http
