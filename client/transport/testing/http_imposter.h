#pragma once

// A tiny real HTTP server for tests: registered answers, recorded requests.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/transport/transport.h"

namespace sless::transport {

struct RecordedRequest {
  std::string method;
  std::string target;  ///< path and query as sent
  Headers headers;
  std::string body;
  int connection = 0;  ///< number of the connection it came by, from 1
};

struct ImposterAnswer {
  int status = 200;
  std::string body;
  Headers headers;
  std::chrono::milliseconds delay{0};  ///< before the answer; ends early when the imposter stops
  enum class End {
    kKeepAlive,      ///< as HTTP/1.1 says
    kClose,          ///< "Connection: close" and closed after the answer
    kCloseSilently,  ///< closed after the answer, without saying so
    kNoAnswer,       ///< the request is read, then the connection is closed without a byte
    kHalfAnswer,     ///< closed in the middle of the body
    kRaw,            ///< `body` is written as it is, then the connection is closed
  } end = End::kKeepAlive;
  bool answer_before_body =
      false;  ///< answers after the request's head, closes without reading the body
};

struct ImposterOptions {
  std::string unix_path;  ///< listen on this unix socket instead of a free loopback port
  std::string cert_file;  ///< with key_file: speak TLS
  std::string key_file;
};

/// Thread safety: all methods may be called from any thread; handlers are called from the
/// imposter's threads.
class HttpImposter {
 public:
  explicit HttpImposter(ImposterOptions options = {});
  ~HttpImposter();
  HttpImposter(const HttpImposter&) = delete;

  /// "http://127.0.0.1:<port>", "https://localhost:<port>" or "http+unix://…", without a final
  /// slash.
  std::string Url() const;
  int Port() const;

  /// Answers `method` on `target` (exact with query, else exact without the query) with the answers
  /// given, in turn; the last one stays. Without an answer registered: 404 with a body that says
  /// so.
  void On(std::string method, std::string target, std::vector<ImposterAnswer> answers);
  /// Answers everything; wins over On.
  void Handle(std::function<ImposterAnswer(const RecordedRequest&)> handler);

  std::vector<RecordedRequest> Requests() const;
  /// Requests with that method and target (without query).
  int Count(std::string_view method, std::string_view target) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sless::transport
