#include "client/transport/exchange.h"

#include <fmt/format.h>
#include <poll.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>

#include "client/base/strings.h"

namespace sless::transport {
namespace {

namespace http = boost::beast::http;
using base::Code;
using What = Connection::Io::What;

constexpr uint32_t kMaxHeadBytes = 64 << 10;
constexpr size_t kChunkBytes = 64 << 10;
constexpr int kMaxInterimAnswers = 10;

class Exchange {
 public:
  Exchange(const Request& request, const Url& url, Connection& connection, Wait& wait)
      : request_(request), url_(url), connection_(connection), wait_(wait) {
    NewParser();
  }

  Outcome Run() {
    Outcome outcome;
    outcome.response = RunInner();
    outcome.any_sent = any_sent_;
    outcome.any_received = any_received_;
    outcome.reusable = outcome.response && all_sent_ && keep_alive_ && pending_.empty();
    return outcome;
  }

 private:
  base::Result<Response> RunInner() {
    RETURN_IF_ERROR(SendHead());
    RETURN_IF_ERROR(SendBody());
    all_sent_ = !answered_ && lost_.empty();
    while (!answered_) {
      const auto io = ReadSome();
      RETURN_IF_ERROR(io);
      if (*io || answered_) continue;
      RETURN_IF_ERROR(wait_.For(connection_.fd(), want_write_ ? POLLOUT : POLLIN,
                                any_received_ ? "reading the answer" : "waiting for the answer"));
    }
    return std::move(response_);
  }

  std::string Head() const {
    auto head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\n", request_.method, url_.target,
                            url_.HostHeader());
    for (const auto& [name, value] : request_.headers.All())
      head += fmt::format("{}: {}\r\n", name, value);
    if (request_.stream) {
      head += request_.stream_length
                  ? fmt::format("Content-Length: {}\r\n", *request_.stream_length)
                  : "Transfer-Encoding: chunked\r\n";
    } else if (!request_.body.empty() || request_.method == "PUT" || request_.method == "POST" ||
               request_.method == "PATCH") {
      head += fmt::format("Content-Length: {}\r\n", request_.body.size());
    }
    return head + "\r\n";
  }

  base::Status SendHead() {
    auto head = Head();
    // One packet for head and body where the body is small.
    small_body_sent_ = !request_.stream && request_.body.size() <= kChunkBytes;
    if (small_body_sent_) head += request_.body;
    return SendBytes(head);
  }

  base::Status SendBody() {
    if (!request_.stream) return small_body_sent_ ? base::Ok() : SendBytes(request_.body);
    ASSIGN_OR_RETURN(const auto reader, request_.stream());
    std::string chunk(kChunkBytes, '\0');
    uint64_t sent = 0;
    while (!answered_ && lost_.empty()) {
      ASSIGN_OR_RETURN(const size_t n, reader(chunk.data(), chunk.size()));
      sent += n;
      if (request_.stream_length &&
          (sent > *request_.stream_length || (n == 0 && sent < *request_.stream_length))) {
        return wait_.Fail(Code::kInvalidArgument,
                          fmt::format("the request's body was announced with {} bytes and has {}",
                                      *request_.stream_length, n == 0 ? "less" : "more"));
      }
      if (n > 0 || !request_.stream_length)
        RETURN_IF_ERROR(SendChunk(std::string_view(chunk).substr(0, n)));
      if (n == 0) break;
    }
    return base::Ok();
  }

  base::Status SendChunk(std::string_view bytes) {
    if (request_.stream_length) return SendBytes(bytes);
    if (bytes.empty()) return SendBytes("0\r\n\r\n");
    RETURN_IF_ERROR(SendBytes(fmt::format("{:x}\r\n", bytes.size())));
    RETURN_IF_ERROR(SendBytes(bytes));
    return SendBytes("\r\n");
  }

  /// Sends all of `bytes`, unless an answer comes first. A connection that is lost here is no error
  /// yet: an answer may lie in the receive buffer (a server that refuses an upload answers and
  /// closes).
  base::Status SendBytes(std::string_view bytes) {
    while (!bytes.empty() && !answered_ && lost_.empty()) {
      const auto io = connection_.Write(bytes.data(), bytes.size());
      if (io.what == What::kBytes) {
        any_sent_ = true;
        bytes.remove_prefix(io.bytes);
      } else if (io.what == What::kLost || io.what == What::kEnd) {
        lost_ = io.why.empty() ? "the connection was closed" : io.why;
      } else {
        const short events = POLLIN | (io.what == What::kWantWrite ? POLLOUT : 0);
        ASSIGN_OR_RETURN(const short got,
                         wait_.For(connection_.fd(), events, "sending the request"));
        if (got & POLLIN) RETURN_IF_ERROR(ReadSome());
      }
    }
    return base::Ok();
  }

  /// Reads what has come; true if there was something. Sets answered_ at the end of a final answer.
  base::Result<bool> ReadSome() {
    char buffer[16 << 10];
    const auto io = connection_.Read(buffer, sizeof buffer);
    want_write_ = io.what == What::kWantWrite;
    if (io.what == What::kWantRead || io.what == What::kWantWrite) return false;
    if (io.what == What::kBytes) {
      any_received_ = true;
      pending_.append(buffer, io.bytes);
      RETURN_IF_ERROR(Parse());
      return true;
    }
    if (io.what == What::kEnd && any_received_) {
      boost::beast::error_code error;
      parser_->put_eof(error);
      if (!error && parser_->is_done()) {
        Finish();
        return true;
      }
    }
    const std::string why = !lost_.empty()           ? lost_
                            : io.what == What::kLost ? io.why
                                                     : "the connection was closed";
    return wait_.Fail(Code::kUnavailable, any_received_
                                              ? fmt::format("{} in the middle of the answer", why)
                                              : fmt::format("{} without an answer", why));
  }

  base::Status Parse() {
    while (!answered_ && !pending_.empty()) {
      boost::beast::error_code error;
      const size_t used = parser_->put(boost::asio::buffer(pending_), error);
      pending_.erase(0, used);
      if (error == http::error::need_more) break;
      if (error == http::error::header_limit) {
        return wait_.Fail(
            Code::kTooLarge,
            fmt::format("the head of the answer is longer than {} bytes", kMaxHeadBytes));
      }
      if (error == http::error::body_limit) {
        return wait_.Fail(Code::kTooLarge, fmt::format("the answer is longer than {} bytes",
                                                       request_.max_response_bytes));
      }
      if (error) {
        return wait_.Fail(
            Code::kUnavailable,
            fmt::format("the answer is not HTTP ({}); is this the right port, is it https?",
                        error.message()));
      }
      if (parser_->is_done()) RETURN_IF_ERROR(EndOfAnswer());
      if (used == 0) break;
    }
    return base::Ok();
  }

  base::Status EndOfAnswer() {
    if (parser_->get().result_int() >= 200) {
      Finish();
      return base::Ok();
    }
    if (++interim_ > kMaxInterimAnswers || parser_->get().result_int() == 101) {
      return wait_.Fail(Code::kUnavailable, "the server sends only interim (1xx) answers");
    }
    NewParser();
    return base::Ok();
  }

  void Finish() {
    auto message = parser_->release();
    response_.status = static_cast<int>(message.result_int());
    for (const auto& field : message) {
      response_.headers.Add(std::string(field.name_string()), std::string(field.value()));
    }
    response_.body = std::move(message.body());
    keep_alive_ = message.keep_alive() && !message.need_eof();
    answered_ = true;
  }

  void NewParser() {
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(kMaxHeadBytes);
    parser_->body_limit(request_.max_response_bytes);
    parser_->skip(request_.method == "HEAD");
  }

  const Request& request_;
  const Url& url_;
  Connection& connection_;
  Wait& wait_;
  std::optional<http::response_parser<http::string_body>> parser_;
  std::string pending_;  // received, not yet taken by the parser
  Response response_;
  std::string lost_;  // why the connection took no more bytes
  int interim_ = 0;
  bool small_body_sent_ = false;
  bool any_sent_ = false;
  bool any_received_ = false;
  bool all_sent_ = false;
  bool answered_ = false;
  bool keep_alive_ = false;
  bool want_write_ = false;
};

}  // namespace

base::Status CheckRequest(const Request& request) {
  if (!base::IsHttpToken(request.method))
    return base::Err(Code::kInvalidArgument,
                     fmt::format("want an HTTP method, got {:?}", request.method));
  for (const auto& [name, value] : request.headers.All()) {
    if (!base::IsHttpToken(name))
      return base::Err(Code::kInvalidArgument,
                       fmt::format("want the name of a header, got {:?}", name));
    if (value.find_first_of(std::string_view("\r\n\0", 3)) != std::string::npos) {
      return base::Err(Code::kInvalidArgument,
                       fmt::format("the value of the header {} has a line break or a NUL", name));
    }
  }
  for (const char* name : {"Host", "Content-Length", "Transfer-Encoding", "Connection"}) {
    if (request.headers.Has(name)) {
      return base::Err(Code::kInvalidArgument,
                       fmt::format("the header {} is set by the transport", name));
    }
  }
  return base::Ok();
}

Outcome RunExchange(const Request& request, const Url& url, Connection& connection, Wait& wait) {
  try {
    return Exchange(request, url, connection, wait).Run();
  } catch (const std::exception& e) {  // of the parser's allocations
    return {wait.Fail(Code::kInternal, e.what()), true, true, false};
  }
}

}  // namespace sless::transport
