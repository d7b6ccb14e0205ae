#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>

#include "server/http/session.h"

namespace sless::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr size_t kPiece = 64 * 1024;

base::Error Gone() {
  return {base::Code::kCancelled, "the client closed the connection or was too slow", "", "", {}};
}

// Breaks off what waits for the socket at `at`; the connection stays as it is.
class Alarm {
 public:
  Alarm(Socket& socket, std::chrono::steady_clock::time_point at) : timer_(socket.get_executor()) {
    if (at == std::chrono::steady_clock::time_point::max()) return;
    rang_ = std::make_shared<bool>(false);
    timer_.expires_at(at);
    timer_.async_wait(
        [&socket, rang = std::weak_ptr<bool>(rang_)](boost::system::error_code error) {
          const auto armed = rang.lock();
          if (error || !armed) return;
          *armed = true;
          socket.cancel(error);
        });
  }
  bool rang() const { return rang_ && *rang_; }

 private:
  asio::steady_timer timer_;
  // Gone with the alarm: a handler that is on its way by then must not break off what comes next.
  std::shared_ptr<bool> rang_;
};

}  // namespace

std::optional<uint64_t> Session::body_length() const {
  if (parser_->chunked()) return std::nullopt;
  const auto length = parser_->content_length();
  return length ? *length : 0;
}

Task<base::Status> Session::SendContinue() {
  if (!std::exchange(expects_continue_, false)) co_return base::Ok();
  auto status = co_await Write("HTTP/1.1 100 Continue\r\n\r\n");
  co_return status;
}

base::Status Session::CheckBody() const {
  if (body_read_ > max_body_ || body_length().value_or(0) > max_body_) {
    return base::Err(base::Code::kTooLarge,
                     fmt::format("the body is above the limit of {} bytes", max_body_), "",
                     "TooLarge");
  }
  const auto& options = shared_->options;
  if (parser_->is_done() ||
      body_took_ <=
          options.body_time + std::chrono::milliseconds(body_read_ * 1000 / options.body_rate))
    return base::Ok();
  return base::Err(
      base::Code::kDeadlineExceeded,
      fmt::format("the request body comes too slowly: {} bytes in {} s; it may take {} s, and a "
                  "second more for each {} bytes that have come",
                  body_read_, std::chrono::duration_cast<std::chrono::seconds>(body_took_).count(),
                  options.body_time.count() / 1000, options.body_rate),
      "", "BodyTooSlow");
}

Task<base::Result<std::string_view>> Session::ReadBody(
    std::chrono::steady_clock::time_point until) {
  auto good = CheckBody();
  if (!good) co_return base::Err(good.error());
  if (!parser_->is_done()) {
    const auto status = co_await SendContinue();
    if (!status) co_return base::Err(status.error());
  }
  chunk_.resize(kPiece);
  // For the piece, however many reads it takes: the extensions of a chunk are none of it.
  if (!parser_->is_done()) stream_.expires_after(shared_->options.body_timeout);
  Alarm alarm(stream_.socket(), until);
  size_t got = 0;
  const auto began = std::chrono::steady_clock::now();
  bool late = began >= until && !parser_->is_done();
  while (got == 0 && !late && !parser_->is_done()) {
    auto& body = parser_->get().body();
    body.data = chunk_.data();
    body.size = chunk_.size();
    body.more = true;
    // Beast reads as much at once as the buffer has room for, and it begins with 512 bytes.
    if (parser_->content_length_remaining().value_or(kPiece) > 4096) buffer_.reserve(kPiece);
    auto [error, n] = co_await beast::http::async_read_some(stream_, buffer_, *parser_, kTuple);
    got = chunk_.size() - body.size;
    late = alarm.rang() && got == 0;  // the parser and the buffer keep what they have
    const bool broken_off = late && error == asio::error::operation_aborted;
    if (error && error != beast::http::error::need_buffer && !broken_off) {
      closing_ = true;
      if (error.category() == make_error_code(beast::http::error::bad_chunk).category() &&
          error != beast::http::error::partial_message &&
          error != beast::http::error::end_of_stream) {
        co_return base::Err(base::Code::kInvalidArgument,
                            "the body is not framed as HTTP wants: " + error.message(), "",
                            "BadRequest");
      }
      gone_.request_stop();
      co_return base::Err(Gone());
    }
  }
  body_read_ += got;
  // A piece has a deadline of its own, so that looking after each is often enough.
  body_took_ += std::chrono::steady_clock::now() - began;
  good = CheckBody();
  if (!good) co_return base::Err(good.error());
  if (late) {
    co_return base::Err(base::Code::kDeadlineExceeded, "no more of the body has come", "",
                        "NotYet");
  }
  if (parser_->is_done()) WatchForClose();
  co_return std::string_view(chunk_.data(), got);
}

// While a handler works nobody reads the socket; a wait for readability tells when the client
// closes it.
void Session::WatchForClose() {
  if (watching_ || buffer_.size() > 0 || !stream_.socket().is_open()) return;
  watching_ = true;
  stream_.socket().async_wait(
      Socket::wait_read, [self = shared_from_this()](boost::system::error_code error) {
        self->watching_ = false;
        if (error || !self->stream_.socket().is_open()) return;
        char byte = 0;
        const auto n =
            ::recv(self->stream_.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
          return;  // the next request: it is read in its turn
        self->closing_ = true;
        self->gone_.request_stop();
        self->wake_->Set();
      });
}

Task<base::Status> Session::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.substr(0, kPiece);
    stream_.expires_after(shared_->options.body_timeout);
    const auto [error, n] =
        co_await asio::async_write(stream_, asio::buffer(piece.data(), piece.size()), kTuple);
    if (error) {
      closing_ = true;
      gone_.request_stop();
      co_return base::Err(Gone());
    }
    bytes.remove_prefix(piece.size());
  }
  stream_.expires_never();
  co_return base::Ok();
}

Task<base::Status> Session::Respond(Response response) {
  const auto body = std::move(response.body);
  const auto length = body.size();
  if (answered_ || status_ != 0) co_return base::Ok();
  status_ = response.status;
  if (!parser_ || !parser_->is_done()) closing_ = true;
  response.headers.Set("X-Request-Id", request_.request_id);
  const bool no_body = HasNoBody(status_, request_.method);
  const auto framing =
      status_ == 204 || status_ == 304 || status_ / 100 == 1 ? Framing::kNone : Framing::kLength;
  auto text = WriteResponseHead(status_, response.headers, framing, length, !closing_);
  const bool small = length <= kPiece;
  if (!no_body && small) text += body;
  sent_ = no_body ? 0 : length;
  auto status = co_await Write(text);
  if (status && !no_body && !small) status = co_await Write(body);
  answered_ = status.has_value();
  co_return status;
}

Task<base::Status> Session::StartResponse(Response head, std::optional<uint64_t> length) {
  status_ = head.status;
  if (!parser_->is_done()) closing_ = true;
  head.headers.Set("X-Request-Id", request_.request_id);
  drop_body_ = HasNoBody(status_, request_.method);
  framing_ = length ? Framing::kLength : request_.http11 ? Framing::kChunked : Framing::kUntilClose;
  if (drop_body_ && (!length || status_ == 204 || status_ / 100 == 1)) framing_ = Framing::kNone;
  if (framing_ == Framing::kUntilClose) closing_ = true;
  const auto text =
      WriteResponseHead(status_, head.headers, framing_, length.value_or(0), !closing_);
  auto status = co_await Write(text);
  co_return status;
}

Task<base::Status> Session::WriteBody(std::string_view bytes) {
  if (drop_body_ || bytes.empty()) co_return base::Ok();
  sent_ += bytes.size();
  std::string framed;
  if (framing_ == Framing::kChunked) {
    framed = fmt::format("{:x}\r\n", bytes.size());
    framed.append(bytes);
    framed += "\r\n";
    bytes = framed;
  }
  auto status = co_await Write(bytes);
  co_return status;
}

Task<base::Status> Session::FinishBody() {
  auto status = base::Ok();
  if (!drop_body_ && framing_ == Framing::kChunked) status = co_await Write("0\r\n\r\n");
  answered_ = status.has_value();
  co_return status;
}

}  // namespace sless::http
