#include "client/transport/testing/http_imposter.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <thread>

#include "client/base/strings.h"

namespace sless::transport {
namespace {

/// A blocking connection of the imposter; Stop (a shutdown of the socket) ends every call.
class Peer {
 public:
  Peer(int fd, SSL_CTX* tls) : fd_(fd) {
    if (tls != nullptr) {
      ssl_ = SSL_new(tls);
      SSL_set_fd(ssl_, fd);
      broken_ = SSL_accept(ssl_) != 1;
    }
  }
  ~Peer() {
    if (ssl_ != nullptr) SSL_free(ssl_);
  }
  bool Fill() {
    char buffer[16 << 10];
    if (broken_) return false;
    const auto n = ssl_ != nullptr ? SSL_read(ssl_, buffer, sizeof buffer)
                                   : recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) return false;
    pending_.append(buffer, static_cast<size_t>(n));
    return true;
  }
  /// Everything up to and including `mark`; "" at the end of the connection.
  std::string Until(std::string_view mark) {
    size_t at;
    while ((at = pending_.find(mark)) == std::string::npos) {
      if (pending_.size() > (1 << 20) || !Fill()) return "";
    }
    return Take(at + mark.size());
  }
  bool Bytes(size_t count, std::string& out) {
    while (pending_.size() < count) {
      if (!Fill()) return false;
    }
    out += Take(count);
    return true;
  }
  void Write(std::string_view bytes) {
    while (!bytes.empty() && !broken_) {
      const auto n = ssl_ != nullptr ? SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()))
                                     : send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) broken_ = true;
      if (n > 0) bytes.remove_prefix(static_cast<size_t>(n));
    }
  }

 private:
  std::string Take(size_t count) {
    auto taken = pending_.substr(0, count);
    pending_.erase(0, count);
    return taken;
  }
  int fd_;
  SSL* ssl_ = nullptr;
  std::string pending_;
  bool broken_ = false;
};

bool ReadBody(Peer& peer, RecordedRequest& request) {
  if (request.headers.Get("Transfer-Encoding") == "chunked") {
    for (;;) {
      const auto line = peer.Until("\r\n");
      if (line.empty()) return false;
      const size_t size = std::strtoul(line.c_str(), nullptr, 16);
      std::string crlf;
      if (!peer.Bytes(size, request.body) || !peer.Bytes(2, crlf)) return false;
      if (size == 0) return true;
    }
  }
  const std::string length(request.headers.Get("Content-Length"));
  return length.empty() || peer.Bytes(std::strtoul(length.c_str(), nullptr, 10), request.body);
}

bool ReadHead(Peer& peer, RecordedRequest& request) {
  const auto head = peer.Until("\r\n\r\n");
  if (head.empty()) return false;
  const auto lines = base::Split(head, '\n');
  const auto words = base::Split(base::Trim(lines[0]), ' ');
  if (words.size() != 3) return false;
  request.method = words[0];
  request.target = words[1];
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == std::string::npos) continue;
    request.headers.Add(lines[i].substr(0, colon),
                        std::string(base::Trim(std::string_view(lines[i]).substr(colon + 1))));
  }
  return true;
}

std::string AnswerText(const RecordedRequest& request, const ImposterAnswer& answer) {
  using End = ImposterAnswer::End;
  if (answer.end == End::kRaw) return answer.body;
  auto text = fmt::format("HTTP/1.1 {} Imposter\r\n", answer.status);
  for (const auto& [name, value] : answer.headers.All())
    text += fmt::format("{}: {}\r\n", name, value);
  if (!answer.headers.Has("Transfer-Encoding") && !answer.headers.Has("Content-Length") &&
      answer.status != 204) {
    text += fmt::format("Content-Length: {}\r\n", answer.body.size());
  }
  if (answer.end == End::kClose) text += "Connection: close\r\n";
  text += "\r\n";
  if (answer.end == End::kHalfAnswer) return text + answer.body.substr(0, answer.body.size() / 2);
  return request.method == "HEAD" ? text : text + answer.body;
}

std::string WithoutQuery(std::string_view target) {
  return std::string(target.substr(0, target.find('?')));
}

}  // namespace

struct HttpImposter::Impl {
  ImposterOptions options;
  int listen_fd = -1;
  int port = 0;
  SSL_CTX* tls = nullptr;
  mutable std::mutex mutex;  // guards all below
  std::condition_variable stopped;
  bool stopping = false;
  std::map<std::pair<std::string, std::string>, std::list<ImposterAnswer>> answers;
  std::function<ImposterAnswer(const RecordedRequest&)> handler;
  std::vector<RecordedRequest> requests;
  std::map<int, int> open;  // connection number → socket
  std::vector<std::thread> threads;
  int connections = 0;
  std::thread acceptor;

  void Accept() {
    for (;;) {
      const int fd = accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC);
      std::lock_guard lock(mutex);
      if (stopping || fd < 0) {
        if (fd >= 0) close(fd);
        return;
      }
      const int number = ++connections;
      open[number] = fd;
      threads.emplace_back([this, fd, number] {
        Serve(fd, number);
        std::lock_guard inner(mutex);
        open.erase(number);
        close(fd);
      });
    }
  }

  ImposterAnswer AnswerFor(const RecordedRequest& request) {
    std::unique_lock lock(mutex);
    if (const auto handle = handler) {
      lock.unlock();
      return handle(request);
    }
    auto it = answers.find({request.method, request.target});
    if (it == answers.end()) it = answers.find({request.method, WithoutQuery(request.target)});
    if (it == answers.end()) {
      ImposterAnswer none;
      none.status = 404;
      none.body =
          fmt::format("imposter: nothing registered for {} {}", request.method, request.target);
      return none;
    }
    const auto answer = it->second.front();
    if (it->second.size() > 1) it->second.pop_front();
    return answer;
  }

  void Serve(int fd, int number) {
    using End = ImposterAnswer::End;
    Peer peer(fd, tls);
    for (;;) {
      RecordedRequest request;
      request.connection = number;
      if (!ReadHead(peer, request)) return;
      ImposterAnswer answer;
      bool early = false;
      {
        std::lock_guard lock(mutex);
        const auto it = answers.find({request.method, WithoutQuery(request.target)});
        early = it != answers.end() && it->second.front().answer_before_body;
      }
      if (!early && !ReadBody(peer, request)) return;
      {
        std::lock_guard lock(mutex);
        requests.push_back(request);
      }
      answer = AnswerFor(request);
      if (answer.delay.count() > 0) {
        std::unique_lock lock(mutex);
        if (stopped.wait_for(lock, answer.delay, [&] { return stopping; })) return;
      }
      if (answer.end != End::kNoAnswer) peer.Write(AnswerText(request, answer));
      if (early || answer.end != End::kKeepAlive) return;
    }
  }
};

HttpImposter::HttpImposter(ImposterOptions options) : impl_(std::make_unique<Impl>()) {
  impl_->options = std::move(options);
  if (!impl_->options.cert_file.empty()) {
    impl_->tls = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(impl_->tls, impl_->options.cert_file.c_str()) != 1 ||
        SSL_CTX_use_PrivateKey_file(impl_->tls, impl_->options.key_file.c_str(),
                                    SSL_FILETYPE_PEM) != 1) {
      std::abort();
    }
  }
  const auto& path = impl_->options.unix_path;
  if (!path.empty()) {
    sockaddr_un un{};
    un.sun_family = AF_UNIX;
    std::memcpy(un.sun_path, path.data(), std::min(path.size(), sizeof un.sun_path - 1));
    impl_->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(impl_->listen_fd, reinterpret_cast<sockaddr*>(&un), sizeof un) != 0) std::abort();
  } else {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    impl_->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(impl_->listen_fd, reinterpret_cast<sockaddr*>(&v4), sizeof v4) != 0) std::abort();
    socklen_t size = sizeof v4;
    getsockname(impl_->listen_fd, reinterpret_cast<sockaddr*>(&v4), &size);
    impl_->port = ntohs(v4.sin_port);
  }
  if (listen(impl_->listen_fd, 64) != 0) std::abort();
  impl_->acceptor = std::thread([this] {
    // OpenSSL's server side writes with write(2): a client that has gone must not end the test
    // program. Of these threads alone (its children inherit the mask), so that a SIGPIPE of the
    // code under test still shows.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    impl_->Accept();
  });
}

HttpImposter::~HttpImposter() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->stopping = true;
    for (const auto& [number, fd] : impl_->open) shutdown(fd, SHUT_RDWR);
  }
  impl_->stopped.notify_all();
  shutdown(impl_->listen_fd, SHUT_RDWR);
  impl_->acceptor.join();
  for (auto& thread : impl_->threads) thread.join();
  close(impl_->listen_fd);
  if (!impl_->options.unix_path.empty()) unlink(impl_->options.unix_path.c_str());
  SSL_CTX_free(impl_->tls);
}

std::string HttpImposter::Url() const {
  if (!impl_->options.unix_path.empty())
    return "http+unix://" + base::PercentEncode(impl_->options.unix_path);
  return impl_->tls != nullptr ? fmt::format("https://localhost:{}", impl_->port)
                               : fmt::format("http://127.0.0.1:{}", impl_->port);
}

int HttpImposter::Port() const { return impl_->port; }

void HttpImposter::On(std::string method, std::string target, std::vector<ImposterAnswer> answers) {
  std::lock_guard lock(impl_->mutex);
  if (answers.empty()) answers.emplace_back();
  impl_->answers[{std::move(method), std::move(target)}] = {answers.begin(), answers.end()};
}

void HttpImposter::Handle(std::function<ImposterAnswer(const RecordedRequest&)> handler) {
  std::lock_guard lock(impl_->mutex);
  impl_->handler = std::move(handler);
}

std::vector<RecordedRequest> HttpImposter::Requests() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->requests;
}

int HttpImposter::Count(std::string_view method, std::string_view target) const {
  std::lock_guard lock(impl_->mutex);
  int count = 0;
  for (const auto& request : impl_->requests) {
    count += request.method == method && WithoutQuery(request.target) == target;
  }
  return count;
}

}  // namespace sless::transport
