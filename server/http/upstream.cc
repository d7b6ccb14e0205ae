#include "server/http/upstream.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <charconv>
#include <deque>
#include <map>

#include "client/base/guarded.h"
#include "server/http/head_writer.h"
#include "server/http/signal.h"

namespace sless::http {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;
using Protocol = asio::generic::stream_protocol;
using Stream = beast::basic_stream<Protocol>;
constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr size_t kPiece = 64 * 1024;
constexpr size_t kMaxHead = kMaxAnswerHeaders + 4096;
constexpr size_t kMaxIdle = 64;  // per endpoint and thread
// For a piece of an answer that has begun. The peer has all of it.
constexpr auto kStall = std::chrono::seconds(30);

struct Idle {
  std::unique_ptr<Stream> stream;
  std::chrono::steady_clock::time_point since;
};

base::Result<Protocol::endpoint> ParseEndpoint(const std::string& text) {
  const auto bad = base::Err(base::Code::kUnavailable, "no endpoint: " + text, "", "NotStarted");
  if (text.starts_with("unix:")) {
    if (text.size() - 5 >= sizeof(sockaddr_un::sun_path)) return bad;
    return Protocol::endpoint(asio::local::stream_protocol::endpoint(text.substr(5)));
  }
  const auto colon = text.rfind(':');
  if (colon == std::string::npos) return bad;
  auto host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
  uint16_t port = 0;
  const auto* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + colon + 1, end, port);
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error || parsed.ptr != end || parsed.ec != std::errc()) return bad;
  return Protocol::endpoint(asio::ip::tcp::endpoint(address, port));
}

// A pooled connection that the peer has closed, or on which it says something unasked, is of no
// use.
bool IsQuiet(Stream& stream) {
  char byte = 0;
  const auto n = ::recv(stream.socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

struct Upstream::Pool {
  using Key = std::pair<const void*, std::string>;  // event loop, endpoint
  struct State {
    std::map<Key, std::deque<Idle>> idle;
    std::chrono::steady_clock::time_point swept;
  };
  const std::chrono::milliseconds idle_time;
  base::Guarded<State> state;

  explicit Pool(std::chrono::milliseconds idle) : idle_time(idle) {}

  std::unique_ptr<Stream> Take(const Key& key) {
    for (;;) {
      auto found = state.With([&](State& s) -> Idle {
        const auto it = s.idle.find(key);
        if (it == s.idle.end() || it->second.empty()) return {};
        auto last = std::move(it->second.back());
        it->second.pop_back();
        if (it->second.empty()) s.idle.erase(it);
        return last;
      });
      if (!found.stream) return nullptr;
      if (std::chrono::steady_clock::now() - found.since < idle_time && IsQuiet(*found.stream)) {
        return std::move(found.stream);
      }
    }
  }
  void Put(const Key& key, std::unique_ptr<Stream> stream) {
    const auto now = std::chrono::steady_clock::now();
    std::vector<Idle> dropped;  // their sockets close outside of the lock
    state.With([&](State& s) {
      auto& list = s.idle[key];
      list.push_back({std::move(stream), now});
      if (list.size() > kMaxIdle) {
        dropped.push_back(std::move(list.front()));
        list.pop_front();
      }
      if (now - s.swept > idle_time / 4) Sweep(s, now, dropped);
    });
  }
  // Also those to endpoints that nobody calls any more.
  void Sweep(State& s, std::chrono::steady_clock::time_point now,
             std::vector<Idle>& dropped) const {
    s.swept = now;
    for (auto it = s.idle.begin(); it != s.idle.end();) {
      auto& list = it->second;
      while (!list.empty() && now - list.front().since > idle_time) {
        dropped.push_back(std::move(list.front()));
        list.pop_front();
      }
      it = list.empty() ? s.idle.erase(it) : std::next(it);
    }
  }
};

namespace {

class PooledCall final : public UpstreamCall {
 public:
  PooledCall(std::shared_ptr<Upstream::Pool> pool, asio::any_io_executor executor,
             std::string endpoint, std::chrono::steady_clock::time_point deadline)
      : pool_(std::move(pool)),
        executor_(executor),
        endpoint_(std::move(endpoint)),
        deadline_(deadline) {}

  ~PooledCall() override {
    if (!stream_) return;
    if (complete_ && !cancelled_ && !finished_ && parser_->keep_alive() && buffer_.size() == 0) {
      stream_->expires_never();
      pool_->Put(Key(), std::move(stream_));
    }
  }

  Task<base::Status> Open(std::string method, std::string target, Headers headers,
                          std::optional<uint64_t> length) override {
    chunked_ = !length;
    is_head_ = method == "HEAD";
    stream_ = pool_->Take(Key());
    if (!stream_) {
      auto status = co_await Connect();
      if (!status) co_return status;
    }
    stream_->expires_at(deadline_);
    const auto framing = chunked_ ? Framing::kChunked : Framing::kLength;
    const bool bodiless = length && *length == 0 && !headers.Has("Content-Length");
    const auto head = WriteRequestHead(method, target, "function", headers,
                                       bodiless ? Framing::kNone : framing, length.value_or(0));
    auto status = co_await Write(head);
    co_return status;
  }

  Task<base::Status> WriteBody(std::string_view bytes) override {
    if (bytes.empty()) co_return base::Ok();
    std::string framed;
    if (chunked_) {
      framed = fmt::format("{:x}\r\n", bytes.size());
      framed.append(bytes);
      framed += "\r\n";
      bytes = framed;
    }
    auto status = co_await Write(bytes);
    co_return status;
  }

  Task<base::Status> FinishBody() override {
    auto status = base::Ok();
    if (chunked_) status = co_await Write("0\r\n\r\n");
    co_return status;
  }

  Task<base::Result<UpstreamHead>> ReadHead() override {
    for (;;) {
      parser_.emplace();
      parser_->header_limit(kMaxHead);
      parser_->body_limit(boost::none);
      parser_->skip(is_head_);
      const auto [error, n] =
          co_await beast::http::async_read_header(*stream_, buffer_, *parser_, kTuple);
      if (error) co_return base::Err(Explain(error));
      if (parser_->get().result_int() / 100 != 1) break;
    }
    UpstreamHead head;
    head.status = static_cast<int>(parser_->get().result_int());
    for (const auto& field : parser_->get()) {
      head.headers.Add(std::string(field.name_string()), std::string(field.value()));
    }
    if (const auto length = parser_->content_length()) head.length = *length;
    complete_ = parser_->is_done();
    co_return head;
  }

  Task<base::Result<std::string_view>> ReadBody() override {
    chunk_.resize(kPiece);
    // Not the deadline of the call: whoever reads the answer may be slow.
    stream_->expires_after(kStall);
    size_t got = 0;
    while (got == 0 && !parser_->is_done()) {
      auto& body = parser_->get().body();
      body.data = chunk_.data();
      body.size = chunk_.size();
      body.more = true;
      // Beast reads as much at once as the buffer has room for, and it begins with 512 bytes.
      if (parser_->content_length_remaining().value_or(kPiece) > 4096) buffer_.reserve(kPiece);
      const auto [error, n] =
          co_await beast::http::async_read_some(*stream_, buffer_, *parser_, kTuple);
      got = chunk_.size() - body.size;
      if (error && error != beast::http::error::need_buffer) co_return base::Err(Explain(error));
    }
    complete_ = parser_->is_done();
    co_return std::string_view(chunk_.data(), got);
  }

  void FinishSending() override {
    finished_ = true;
    error_code ignored;
    if (stream_) stream_->socket().shutdown(asio::socket_base::shutdown_send, ignored);
  }

  void Cancel() override {
    cancelled_ = true;
    error_code ignored;
    if (stream_) stream_->socket().close(ignored);
  }

 private:
  Upstream::Pool::Key Key() const {
    return {static_cast<const void*>(&asio::query(executor_, asio::execution::context)), endpoint_};
  }

  Task<base::Status> Connect() {
    const auto endpoint = ParseEndpoint(endpoint_);
    if (!endpoint) co_return base::Err(endpoint.error());
    stream_ = std::make_unique<Stream>(executor_);
    stream_->expires_at(deadline_);
    const auto [error] = co_await stream_->async_connect(*endpoint, kTuple);
    if (!error) {
      if (!endpoint_.starts_with("unix:")) {
        error_code ignored;
        stream_->socket().set_option(asio::ip::tcp::no_delay(true), ignored);
      }
      co_return base::Ok();
    }
    auto explained = Explain(error);
    if (explained.code == base::Code::kInternal) {
      explained = {base::Code::kUnavailable,
                   "cannot connect to the replica: " + error.message(),
                   "",
                   "NotStarted",
                   {}};
    }
    co_return base::Err(std::move(explained));
  }

  Task<base::Status> Write(std::string_view bytes) {
    const auto [error, n] =
        co_await asio::async_write(*stream_, asio::buffer(bytes.data(), bytes.size()), kTuple);
    if (error) co_return base::Err(Explain(error));
    co_return base::Ok();
  }

  base::Error Explain(const error_code& error) const {
    if (cancelled_) return {base::Code::kCancelled, "the call was cancelled", "", "", {}};
    if (error == beast::error::timeout)
      return {
          base::Code::kDeadlineExceeded, "the replica did not answer in time", "", "Timeout", {}};
    return {base::Code::kInternal,
            "the connection to the replica ended: " + error.message(),
            "",
            "ConnectionLost",
            {}};
  }

  std::shared_ptr<Upstream::Pool> pool_;
  asio::any_io_executor executor_;
  std::string endpoint_;
  std::chrono::steady_clock::time_point deadline_;
  std::unique_ptr<Stream> stream_;
  beast::flat_buffer buffer_{kMaxHead + kPiece};
  std::optional<beast::http::response_parser<beast::http::buffer_body>> parser_;
  std::vector<char> chunk_;
  bool chunked_ = false;
  bool is_head_ = false;
  bool complete_ = false;
  bool cancelled_ = false;
  bool finished_ = false;  // our sending side is shut
};

}  // namespace

Upstream::Upstream(std::chrono::milliseconds idle_time)
    : pool_(std::make_shared<Pool>(idle_time)) {}
Upstream::~Upstream() {
  pool_->state.With([](Pool::State& s) { s.idle.clear(); });
}

std::unique_ptr<UpstreamCall> Upstream::Call(asio::any_io_executor executor, std::string endpoint,
                                             std::chrono::steady_clock::time_point deadline) {
  return std::make_unique<PooledCall>(pool_, std::move(executor), std::move(endpoint), deadline);
}

}  // namespace sless::http
