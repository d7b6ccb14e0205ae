#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "client/base/testing/result_matchers.h"
#include "client/transport/beast_transport.h"
#include "client/transport/testing/http_imposter.h"
#include "client/transport/url.h"

namespace sless::transport {
namespace {

using base::Code;
using base::Deadline;
using base::IsError;
using base::IsOk;
using testing::AllOf;
using testing::HasSubstr;
using End = ImposterAnswer::End;
using std::chrono::milliseconds;

const base::SystemClock kClock;
Deadline In(int ms) { return Deadline::After(kClock, milliseconds(ms)); }

ImposterAnswer Answer(int status, std::string body, End end = End::kKeepAlive) {
  ImposterAnswer answer;
  answer.status = status;
  answer.body = std::move(body);
  answer.end = end;
  return answer;
}

Request Get(std::string url) {
  Request request;
  request.url = std::move(url);
  return request;
}

OpenBody Repeat(std::string piece, size_t times) {
  return [=]() -> base::Result<BodyReader> {
    return [piece, left = times](char* out, size_t size) mutable -> base::Result<size_t> {
      size_t n = 0;
      for (; left > 0 && n + piece.size() <= size; --left, n += piece.size())
        piece.copy(out + n, piece.size());
      return n;
    };
  };
}

TEST(Url, Parts) {
  const auto url = ParseUrl("https://example.org/a?b=c");
  ASSERT_THAT(url, IsOk());
  EXPECT_EQ(url->Peer(), "example.org:443");
  EXPECT_EQ(url->HostHeader(), "example.org");
  EXPECT_EQ(url->target, "/a?b=c");
  const auto v6 = ParseUrl("http://[::1]:8080");
  ASSERT_THAT(v6, IsOk());
  EXPECT_EQ(v6->HostHeader(), "[::1]:8080");
  EXPECT_EQ(v6->target, "/");
  const auto socket = ParseUrl("http+unix://%2Ftmp%2Fs.sock/x");
  ASSERT_THAT(socket, IsOk());
  EXPECT_EQ(socket->unix_path, "/tmp/s.sock");
  EXPECT_EQ(socket->target, "/x");
  EXPECT_EQ(ParseUrl("http://h?q")->target, "/?q");
}

TEST(Url, Refused) {
  for (const char* text :
       {"", "example.org", "ftp://x/", "http://", "http://:80/", "http://h:0/", "http://h:65536/",
        "http://h:x/", "http://h:80x/", "http://user:pw@h/", "http://h/a b", "http://h/\r\nX: y",
        "http://h/#f", "http://[::1", "http://h\r\n/", "http+unix:///x", "http+unix://%zz/x",
        "http://h\xc3\xa9/"}) {
    EXPECT_THAT(ParseUrl(text), IsError(Code::kInvalidArgument, HasSubstr("want a URL"))) << text;
  }
  EXPECT_THAT(ParseUrl("http://user:secret@h/").error().message, testing::Not(HasSubstr("secret")));
  EXPECT_THAT(ParseUrl("http://h/a b?secret").error().message, testing::Not(HasSubstr("secret")));
}

TEST(Transport, GetAndReuse) {
  HttpImposter server;
  server.On("GET", "/a", {[] {
              auto answer = Answer(201, "hello");
              answer.headers.Add("X-One", "1");
              return answer;
            }()});
  const auto transport = MakeBeastTransport();
  for (int i = 0; i < 3; ++i) {
    auto request = Get(server.Url() + "/a");
    request.headers.Add("X-Sent", "yes");
    const auto response = transport->Send(request, In(5000));
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(response->status, 201);
    EXPECT_EQ(response->body, "hello");
    EXPECT_EQ(response->headers.Get("x-ONE"), "1");
  }
  const auto requests = server.Requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(requests[2].connection, 1);
  EXPECT_EQ(requests[0].headers.Get("x-sent"), "yes");
  EXPECT_EQ(requests[0].headers.Get("host"), server.Url().substr(7));
}

TEST(Transport, BodiesOfEveryKind) {
  HttpImposter server;
  server.On("PUT", "/", {Answer(200, "ok")});
  const auto transport = MakeBeastTransport();
  auto request = Get(server.Url());
  request.method = "PUT";
  request.body = std::string(300'000, 'x');
  ASSERT_THAT(transport->Send(request, In(5000)), IsOk());
  request.body.clear();
  ASSERT_THAT(transport->Send(request, In(5000)), IsOk());
  request.stream = Repeat("0123456789", 100'000);
  ASSERT_THAT(transport->Send(request, In(5000)), IsOk());
  request.stream_length = 1'000'000;
  ASSERT_THAT(transport->Send(request, In(5000)), IsOk());
  const auto requests = server.Requests();
  ASSERT_EQ(requests.size(), 4u);
  EXPECT_EQ(requests[0].body.size(), 300'000u);
  EXPECT_EQ(requests[1].body, "");
  EXPECT_EQ(requests[1].headers.Get("content-length"), "0");
  EXPECT_EQ(requests[2].body.size(), 1'000'000u);
  EXPECT_EQ(requests[2].headers.Get("transfer-encoding"), "chunked");
  EXPECT_EQ(requests[3].body, requests[2].body);
  EXPECT_EQ(requests[3].headers.Get("content-length"), "1000000");

  request.stream_length = 5;
  EXPECT_THAT(transport->Send(request, In(5000)),
              IsError(Code::kInvalidArgument, HasSubstr("announced with 5 bytes")));
  request.stream_length = 2'000'000;
  EXPECT_THAT(transport->Send(request, In(5000)),
              IsError(Code::kInvalidArgument, HasSubstr("has less")));
  request.stream = []() -> base::Result<BodyReader> {
    return [](char*, size_t) -> base::Result<size_t> {
      return base::Err(Code::kAborted, "file changed");
    };
  };
  EXPECT_THAT(transport->Send(request, In(5000)), IsError(Code::kAborted, "file changed"));
}

TEST(Transport, AnswersOfEveryShape) {
  struct Case {
    const char* name;
    std::string raw;
    std::string body;
    const char* error;
  };
  const Case cases[] = {
      {"UntilTheEnd", "HTTP/1.1 200 OK\r\n\r\nabc", "abc", ""},
      {"Chunked",
       "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
       "abcde", ""},
      {"Interim",
       "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\nHTTP/1.1 200 "
       "OK\r\nContent-Length: 2\r\n\r\nok",
       "ok", ""},
      {"OldHttp", "HTTP/1.0 200 OK\r\n\r\nold", "old", ""},
      {"CutChunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", "",
       "in the middle of the answer"},
      {"CutHead", "HTTP/1.1 200 OK\r\nA", "", "in the middle of the answer"},
      {"NotHttp", "SSH-2.0-OpenSSH_9.2\r\n", "", "not HTTP"},
      {"BadChunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "", "not HTTP"},
      {"TwoLengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "",
       "not HTTP"},
      {"Empty", "", "", "without an answer"},
  };
  for (const auto& row : cases) {
    HttpImposter server;
    server.On("GET", "/", {Answer(0, row.raw, End::kRaw)});
    const auto response = MakeBeastTransport()->Send(Get(server.Url()), In(5000));
    if (*row.error == '\0') {
      ASSERT_THAT(response, IsOk()) << row.name;
      EXPECT_EQ(response->body, row.body) << row.name;
    } else {
      EXPECT_THAT(response, IsError(Code::kUnavailable,
                                    AllOf(HasSubstr(row.error), HasSubstr(server.Url().substr(7)))))
          << row.name;
    }
  }
}

TEST(Transport, Limits) {
  HttpImposter server;
  server.On("GET", "/body", {Answer(200, std::string(2000, 'x'))});
  server.On("GET", "/endless",
            {Answer(0, "HTTP/1.1 200 OK\r\n\r\n" + std::string(2000, 'x'), End::kRaw)});
  server.On("GET", "/head",
            {Answer(0, "HTTP/1.1 200 OK\r\nA: " + std::string(100'000, 'x'), End::kRaw)});
  const auto transport = MakeBeastTransport();
  for (const char* path : {"/body", "/endless"}) {
    auto request = Get(server.Url() + path);
    request.max_response_bytes = 1999;
    EXPECT_THAT(transport->Send(request, In(5000)),
                IsError(Code::kTooLarge, HasSubstr("longer than 1999 bytes")))
        << path;
    request.max_response_bytes = 2000;
    EXPECT_THAT(transport->Send(request, In(5000)), IsOk()) << path;
  }
  EXPECT_THAT(transport->Send(Get(server.Url() + "/head"), In(5000)),
              IsError(Code::kTooLarge, HasSubstr("head")));
}

TEST(Transport, HeadAndNoContentKeepTheConnection) {
  HttpImposter server;
  server.On("HEAD", "/", {Answer(200, "not sent")});
  server.On("DELETE", "/", {Answer(204, "")});
  const auto transport = MakeBeastTransport();
  for (const char* method : {"HEAD", "DELETE", "HEAD"}) {
    auto request = Get(server.Url());
    request.method = method;
    const auto response = transport->Send(request, In(5000));
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(response->body, "");
  }
  EXPECT_EQ(server.Requests()[2].connection, 1);
}

TEST(Transport, StaleConnectionIsReplaced) {
  HttpImposter server;
  // The server closes right after the second answer or in place of it, without saying so.
  server.On("GET", "/", {Answer(200, "1"), Answer(200, "", End::kNoAnswer), Answer(200, "3")});
  server.On("POST", "/", {Answer(200, "1"), Answer(200, "", End::kNoAnswer), Answer(200, "3")});
  const auto transport = MakeBeastTransport();
  EXPECT_FALSE(transport->Send(Get(server.Url()), In(5000))->repeated);
  const auto again = transport->Send(Get(server.Url()), In(5000));
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->body, "3");  // asked again: GET is idempotent
  EXPECT_TRUE(again->repeated);
  auto post = Get(server.Url());
  post.method = "POST";
  EXPECT_EQ(transport->Send(post, In(5000))->body, "1");
  EXPECT_THAT(transport->Send(post, In(5000)),
              IsError(Code::kUnavailable, HasSubstr("without an answer")));
  EXPECT_EQ(server.Count("POST", "/"), 2);
}

TEST(Transport, ConnectionClosedWhileIdleIsNotUsed) {
  HttpImposter server;
  server.On("POST", "/", {Answer(200, "1", End::kCloseSilently), Answer(200, "2")});
  const auto transport = MakeBeastTransport();
  auto post = Get(server.Url());
  post.method = "POST";
  ASSERT_THAT(transport->Send(post, In(5000)), IsOk());
  std::this_thread::sleep_for(milliseconds(20));  // lets the close arrive
  EXPECT_EQ(transport->Send(post, In(5000))->body, "2");
}

TEST(Transport, FirstConnectionIsNotRetried) {
  HttpImposter server;
  server.On("GET", "/", {Answer(200, "", End::kNoAnswer), Answer(200, "2")});
  EXPECT_THAT(MakeBeastTransport()->Send(Get(server.Url()), In(5000)),
              IsError(Code::kUnavailable, HasSubstr("without an answer")));
  EXPECT_EQ(server.Count("GET", "/"), 1);
}

TEST(Transport, AnswerBeforeTheBodyEndsTheUpload) {
  HttpImposter server;
  auto refuse = Answer(413, "too large");
  refuse.answer_before_body = true;
  server.On("PUT", "/", {refuse});
  auto request = Get(server.Url());
  request.method = "PUT";
  std::atomic<int64_t> read{0};
  request.stream = [&]() -> base::Result<BodyReader> {
    return [&](char* out, size_t size) -> base::Result<size_t> {
      std::fill(out, out + size, 'x');
      read += static_cast<int64_t>(size);
      return read > (int64_t{1} << 30) ? 0 : size;
    };
  };
  const auto response = MakeBeastTransport()->Send(request, In(20'000));
  // The server closes with bytes unread, so its answer may be lost to a reset; both outcomes end
  // the upload.
  if (response) {
    EXPECT_EQ(response->status, 413);
  } else {
    EXPECT_EQ(response.error().code, Code::kUnavailable);
  }
  EXPECT_LT(read, int64_t{1} << 29);
}

TEST(Transport, RefusedNamesThePort) {
  int port = 0;
  { port = HttpImposter().Port(); }
  const auto url = "http://127.0.0.1:" + std::to_string(port);
  EXPECT_THAT(
      MakeBeastTransport()->Send(Get(url), In(5000)),
      IsError(Code::kUnavailable, "127.0.0.1:" + std::to_string(port) + ": connection refused"));
  EXPECT_THAT(MakeBeastTransport()->Send(Get("http+unix://%2Fno%2Fsuch"), In(5000)),
              IsError(Code::kUnavailable, "unix:/no/such: no such file or directory"));
}

TEST(Transport, DeadlineCoversTheAnswer) {
  HttpImposter server;
  auto slow = Answer(200, "late");
  slow.delay = milliseconds(5000);
  server.On("GET", "/", {slow});
  const auto before = std::chrono::steady_clock::now();
  EXPECT_THAT(MakeBeastTransport()->Send(Get(server.Url()), In(200)),
              IsError(Code::kDeadlineExceeded,
                      HasSubstr("timed out after 0.2 s while waiting for the answer")));
  EXPECT_LT(std::chrono::steady_clock::now() - before, milliseconds(1500));
  EXPECT_THAT(MakeBeastTransport()->Send(Get(server.Url()), In(0)),
              IsError(Code::kDeadlineExceeded, HasSubstr("timed out")));
}

TEST(Transport, DeadlineCoversConnecting) {
  // A listener whose backlog is full takes no further connection: the kernel drops the packets.
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&v4), sizeof v4), 0);
  ASSERT_EQ(listen(listener, 0), 0);
  socklen_t size = sizeof v4;
  getsockname(listener, reinterpret_cast<sockaddr*>(&v4), &size);
  std::vector<int> fillers;
  for (int i = 0; i < 3; ++i) {
    fillers.push_back(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    connect(fillers.back(), reinterpret_cast<sockaddr*>(&v4), sizeof v4);
  }
  EXPECT_THAT(
      MakeBeastTransport()->Send(Get("http://127.0.0.1:" + std::to_string(ntohs(v4.sin_port))),
                                 In(200)),
      IsError(Code::kDeadlineExceeded, HasSubstr("timed out after 0.2 s while connecting")));
  for (const int fd : fillers) close(fd);
  close(listener);
}

TEST(Transport, StopEndsItAtOnce) {
  HttpImposter server;
  auto slow = Answer(200, "late");
  slow.delay = milliseconds(20'000);
  server.On("GET", "/", {slow});
  const auto transport = MakeBeastTransport();
  std::stop_source stop;
  std::atomic<int64_t> asked{0};
  std::jthread stopper([&] {
    for (int i = 0; i < 1000 && server.Count("GET", "/") == 0; ++i)
      std::this_thread::sleep_for(milliseconds(2));
    asked = std::chrono::steady_clock::now().time_since_epoch().count();
    stop.request_stop();
  });
  EXPECT_THAT(transport->Send(Get(server.Url()), Deadline::Never(), stop.get_token()),
              IsError(Code::kCancelled, HasSubstr("stopped while waiting for the answer")));
  const auto took =
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch().count() - asked);
  EXPECT_LT(took, milliseconds(50));
  EXPECT_THAT(transport->Send(Get(server.Url()), In(5000), stop.get_token()),
              IsError(Code::kCancelled, HasSubstr("stopped")));
}

TEST(Transport, ManyThreads) {
  HttpImposter server;
  server.Handle([](const RecordedRequest& request) { return Answer(200, request.target); });
  const auto transport = MakeBeastTransport();
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i) {
          const auto path = "/" + std::to_string(t) + "/" + std::to_string(i);
          const auto response = transport->Send(Get(server.Url() + path), In(20'000));
          good += response && response->body == path;
        }
      });
    }
  }
  EXPECT_EQ(good, 400);
}

TEST(Transport, BadRequestsAreNotSent) {
  HttpImposter server;
  const auto transport = MakeBeastTransport();
  const auto sent = [&](const char* name, const char* value, const char* method = "GET") {
    auto request = Get(server.Url());
    request.method = method;
    request.headers.Add(name, value);
    return transport->Send(request, In(1000));
  };
  EXPECT_THAT(sent("A", "b\r\nC: d"), IsError(Code::kInvalidArgument, HasSubstr("line break")));
  EXPECT_THAT(sent("A b", "c"), IsError(Code::kInvalidArgument, HasSubstr("name of a header")));
  EXPECT_THAT(sent("content-length", "1"),
              IsError(Code::kInvalidArgument, HasSubstr("set by the transport")));
  EXPECT_THAT(sent("A", "b", "GET /"), IsError(Code::kInvalidArgument, HasSubstr("HTTP method")));
  EXPECT_TRUE(server.Requests().empty());
}

TEST(Transport, UnixSocket) {
  const auto path =
      std::filesystem::temp_directory_path() / ("imposter-" + std::to_string(getpid()));
  HttpImposter server({path.string(), "", ""});
  server.On("GET", "/x", {Answer(200, "unix")});
  const auto response = MakeBeastTransport()->Send(Get(server.Url() + "/x"), In(5000));
  ASSERT_THAT(response, IsOk());
  EXPECT_EQ(response->body, "unix");
  EXPECT_EQ(server.Requests()[0].headers.Get("Host"), "localhost");
}

/// A self-signed certificate for `name` in a temp folder.
class Certificate {
 public:
  explicit Certificate(const std::string& name, long days = 1) {
    dir_ = std::filesystem::temp_directory_path() /
           ("cert-" + std::to_string(getpid()) + "-" + std::to_string(++count_));
    std::filesystem::create_directories(dir_);
    EVP_PKEY* key = EVP_EC_gen("P-256");
    X509* cert = X509_new();
    X509_set_version(cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), -86400 * 3);
    X509_gmtime_adj(X509_getm_notAfter(cert), 86400 * days);
    X509_set_pubkey(cert, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("t"), -1, -1, 0);
    X509_set_issuer_name(cert, X509_get_subject_name(cert));
    X509_EXTENSION* san =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, ("DNS:" + name).c_str());
    X509_add_ext(cert, san, -1);
    X509_EXTENSION_free(san);
    X509_sign(cert, key, EVP_sha256());
    FILE* out = fopen(Cert().c_str(), "w");
    PEM_write_X509(out, cert);
    fclose(out);
    out = fopen(Key().c_str(), "w");
    PEM_write_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr);
    fclose(out);
    X509_free(cert);
    EVP_PKEY_free(key);
  }
  ~Certificate() { std::filesystem::remove_all(dir_); }
  std::string Cert() const { return dir_ / "cert.pem"; }
  std::string Key() const { return dir_ / "key.pem"; }

 private:
  static inline int count_ = 0;
  std::filesystem::path dir_;
};

TEST(TransportTls, GoodCertificate) {
  const Certificate certificate("localhost");
  HttpImposter server({"", certificate.Cert(), certificate.Key()});
  server.On("GET", "/", {Answer(200, "secure")});
  server.On("PUT", "/", {Answer(200, "stored")});
  const auto transport = MakeBeastTransport({certificate.Cert()});
  for (int i = 0; i < 3; ++i) {
    const auto response = transport->Send(Get(server.Url()), In(5000));
    ASSERT_THAT(response, IsOk());
    EXPECT_EQ(response->body, "secure");
  }
  EXPECT_EQ(server.Requests()[2].connection, 1);
  auto put = Get(server.Url());
  put.method = "PUT";
  put.stream = Repeat("0123456789abcdef", 200'000);
  ASSERT_THAT(transport->Send(put, In(20'000)), IsOk());
  EXPECT_EQ(server.Requests()[3].body.size(), 3'200'000u);
}

TEST(TransportTls, BadCertificates) {
  const Certificate other("other.example"), expired("localhost", -1), mine("localhost");
  const auto send = [](const Certificate& server_cert, const std::string& ca) {
    HttpImposter server({"", server_cert.Cert(), server_cert.Key()});
    return MakeBeastTransport({ca})->Send(Get(server.Url()), In(5000));
  };
  EXPECT_THAT(send(other, other.Cert()),
              IsError(Code::kFailedPrecondition,
                      HasSubstr("certificate: it is for other.example, not for localhost")));
  EXPECT_THAT(send(expired, expired.Cert()),
              IsError(Code::kFailedPrecondition, HasSubstr("expired")));
  EXPECT_THAT(send(mine, ""), IsError(Code::kFailedPrecondition, HasSubstr("ca_file")));
  EXPECT_THAT(send(mine, "/no/such.pem"),
              IsError(Code::kFailedPrecondition, HasSubstr("/no/such.pem")));
}

TEST(TransportTls, WrongScheme) {
  HttpImposter plain;
  plain.On("GET", "/", {Answer(200, "x")});
  // The imposter takes the handshake for a request that has no end yet and says nothing.
  const Certificate certificate(
      "localhost");  // the system's CAs take long to read under sanitizers
  EXPECT_THAT(MakeBeastTransport({certificate.Cert()})
                  ->Send(Get("https://127.0.0.1:" + std::to_string(plain.Port())), In(300)),
              IsError(Code::kDeadlineExceeded, HasSubstr("in the TLS handshake")));
}

}  // namespace
}  // namespace sless::transport
