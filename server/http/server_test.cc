#include "server/http/server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "client/base/testing/result_matchers.h"
#include "server/http/stream.h"
#include "server/http/testing/raw_client.h"

namespace sless::http {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

bool Eventually(const std::function<bool()>& holds, std::chrono::milliseconds bound = 5s) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

// Answers with the size of what came; "no" is refused.
class SizeOfUpload final : public Upload {
 public:
  explicit SizeOfUpload(std::atomic<int>& alive) : alive_(alive) { ++alive_; }
  ~SizeOfUpload() override { --alive_; }
  base::Status Write(std::string_view bytes) override {
    size_ += bytes.size();
    if (bytes == "no") return base::Err(base::Code::kFailedPrecondition, "no");
    return base::Ok();
  }
  Reply Finish() override { return Response::Text(200, std::to_string(size_)); }

 private:
  std::atomic<int>& alive_;
  size_t size_ = 0;
};

class ServerTest : public testing::Test {
 protected:
  ServerTest() {
    router.Add("GET", "/hello/{name}",
               [](Request& r) { return Response::Text(200, "hello " + r.Param("name")); });
    router.Add("POST", "/echo", [](Request& r) { return Response::Text(200, r.body); },
               {.max_body = 100});
    router.Add("GET", "/id", [](Request& r) { return Response::Text(200, r.request_id); });
    router.Add("GET", "/throw", [](Request&) -> Reply { throw std::runtime_error("boom"); });
    router.Add("GET", "/error", [](Request&) -> Reply {
      return base::Err(base::Code::kInvalidArgument, "no", "/spec/x", "Why");
    });
    router.Add("GET", "/slow", [this](Request& r) {
      ++slow;
      while (!release && !r.gone.stop_requested()) std::this_thread::sleep_for(1ms);
      if (r.gone.stop_requested()) saw_gone = true;
      return Response::Text(200, "done");
    });
    router.AddUpload("PUT", "/upload",
                     [this](Request&) { return std::make_unique<SizeOfUpload>(uploads); },
                     {.max_body = 10'000'000});
    router.AddUpload("PUT", "/ignore",
                     [](Request&) { return Reply(Response::Text(200, "there already")); });
    router.AddUpload("PUT", "/throwing",
                     [](Request&) -> Reply { throw std::runtime_error("boom"); });
    router.AddDeferred("GET", "/later", [this](Request r, Responder respond) {
      std::lock_guard lock(mutex);
      later.emplace_back(std::move(respond));
      gone = r.gone;
    });
    router.AddDeferred("GET", "/dropped", [](Request, Responder) {});
    router.Add("GET", "/wait", [this](Request& r) -> Reply {
      const auto ms = *r.QueryInt("ms", 1000, 0, 60000);
      return Wait{&hub, "topic", std::chrono::steady_clock::now() + std::chrono::milliseconds(ms),
                  [this](bool last) -> std::optional<Response> {
                    ++checks;
                    if (value == 0 && !last) return std::nullopt;
                    return Response::Text(200, std::to_string(value));
                  }};
    });
    AddStream(router, "*", "/stream/*", [](Exchange& exchange) -> Task<void> {
      Response head;
      co_await exchange.StartResponse(std::move(head), std::nullopt);
      for (;;) {
        const auto chunk = co_await exchange.ReadBody();
        if (!chunk || chunk->empty()) break;
        co_await exchange.WriteBody(*chunk);
      }
      co_await exchange.FinishBody();
    });
    AddStream(router, "POST", "/patient", [this](Exchange& exchange) -> Task<void> {
      auto answer = Response::Text(200, "");
      for (;;) {
        const auto piece = co_await exchange.ReadBody(std::chrono::steady_clock::now() + 20ms);
        if (!piece && piece.error().reason == "NotYet") {
          ++waits;
          continue;
        }
        if (!piece) answer = Response::FromError(piece.error());
        if (!piece || piece->empty()) break;
        answer.body += *piece;
      }
      co_await exchange.Respond(std::move(answer));
    });
    AddStream(router, "GET", "/cut", [](Exchange& exchange) -> Task<void> {
      Response head;
      co_await exchange.StartResponse(std::move(head), 10);
      co_await exchange.WriteBody("abc");
      exchange.Abort();
    });
    AddStream(router, "GET", "/thread", [this](Exchange& exchange) -> Task<void> {
      const auto io_thread = std::this_thread::get_id();
      auto answer = Response::Text(200, "");
      std::function<void()> work = [&] {
        answer.body = std::this_thread::get_id() == io_thread ? "I/O" : "worker";
      };
      ++checks;
      co_await exchange.OnWorker(work);
      co_await exchange.Respond(std::move(answer));
    });
    router.Add("POST", "/guarded", [](Request& r) { return Response::Text(200, r.body); },
               {.guard = [](const Request& r) -> base::Status {
                 if (r.headers.Get("Authorization") == "yes") return base::Ok();
                 return base::Err(base::Code::kUnauthenticated, "no token");
               }});
    options.header_timeout = 300ms;
    options.idle_timeout = 400ms;
    options.body_timeout = 400ms;
  }
  ~ServerTest() override { release = true; }

  const std::string& Start() {
    auto started = Server::Start(options, router, {io, log, metrics});
    EXPECT_THAT(started, base::IsOk());
    server = std::move(*started);
    return server->address();
  }

  // True where one request of that route ended with that status.
  bool Counted(std::string_view route, int status) const {
    return metrics.Text().find(fmt::format(
               "sless_http_requests_total{{route=\"{}\",status=\"{}\"}} 1\n", route, status)) !=
           std::string::npos;
  }

  base::NullLogger log;
  observe::Registry metrics;
  IoPool io{2};
  Router router;
  ServerOptions options;
  WakeHub hub;
  std::atomic<int> slow{0}, checks{0}, value{0}, uploads{0}, waits{0};
  std::atomic<bool> release{false}, saw_gone{false};
  std::mutex mutex;
  std::vector<Responder> later;
  std::stop_token gone;
  std::unique_ptr<Server> server;
};

TEST_F(ServerTest, FramingOfAChunkBuysABodyNoTime) {
  RawClient client(Start());
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  for (const char* late : {"1;a=b\r\n", "x\r\n0\r\n\r\n"}) {
    std::this_thread::sleep_for(250ms);  // 500 ms from one byte of the body to the next
    client.Send(late);
  }
  EXPECT_EQ(client.ReadToEnd(), "");
}

TEST_F(ServerTest, AnswersOnTcpAndUnixSockets) {
  EXPECT_EQ(Call(Start(), "GET", "/hello/w%6Frld").body, "hello world");
  server->Stop(1s);
  options.listen = fmt::format("unix:/tmp/sless_http_test_{}.sock", ::getpid());
  EXPECT_EQ(Call(Start(), "GET", "/hello/unix").body, "hello unix");
  auto second = Server::Start(options, router, {io, log, metrics});
  EXPECT_THAT(second, base::IsError(base::Code::kUnavailable, HasSubstr("cannot listen on unix:")));
  server->Stop(1s);
  EXPECT_NE(::access(options.listen.c_str() + 5, F_OK), 0) << "the socket file is left behind";
}

TEST_F(ServerTest, AListenerHoldsItsPortUntilItIsServed) {
  auto listener = Listener::Open(io, "127.0.0.1:0");
  ASSERT_THAT(listener, base::IsOk());
  const auto address = (*listener)->address();
  EXPECT_THAT(Listener::Open(io, address),
              base::IsError(base::Code::kUnavailable, HasSubstr(address)));
  RawClient early(address);
  early.Send("GET /hello/early HTTP/1.1\r\nHost: x\r\n\r\n");
  server = Server::Start(**listener, options, router, {io, log, metrics});
  listener->reset();
  EXPECT_EQ(server->address(), address);
  EXPECT_EQ(ParseAnswer(early.ReadResponse()).body, "hello early");
  EXPECT_EQ(Call(address, "GET", "/hello/late").status, 200);
}

TEST_F(ServerTest, ListenErrorsSayWhatIsWrong) {
  for (const char* listen :
       {"", "nonsense", "127.0.0.1:99999", "127.0.0.1:", ":80", "127.0.0.1:8o"}) {
    options.listen = listen;
    EXPECT_THAT(Server::Start(options, router, {io, log, metrics}),
                base::IsError(base::Code::kInvalidArgument, HasSubstr("listen address")))
        << listen;
  }
  options.listen = "unix:/" + std::string(200, 'x');
  EXPECT_THAT(Server::Start(options, router, {io, log, metrics}),
              base::IsError(base::Code::kInvalidArgument, HasSubstr("longer")));
}

TEST_F(ServerTest, KeepsConnectionsAndAnswersPipelinedRequestsInOrder) {
  RawClient client(Start());
  client.Send(
      "GET /hello/a HTTP/1.1\r\nHost: x\r\n\r\nPOST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: "
      "3\r\n\r\nabcGET /hello/b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(ParseAnswer(client.ReadResponse()).body, "hello a");
  EXPECT_EQ(ParseAnswer(client.ReadResponse()).body, "abc");
  const auto last = ParseAnswer(client.ReadResponse());
  EXPECT_EQ(last.body, "hello b");
  EXPECT_EQ(last.Header("Connection"), "close");
  client.Close();
  RawClient old(server->address());
  old.Send("GET /hello/c HTTP/1.0\r\n\r\n");
  EXPECT_THAT(old.ReadToEnd(), HasSubstr("hello c"));
}

TEST_F(ServerTest, HeadHasNoBody) {
  RawClient client(Start());
  client.Send("HEAD /hello/a HTTP/1.1\r\nHost: x\r\n\r\nGET /hello/b HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto head = ParseAnswer(client.ReadResponse(true));
  EXPECT_EQ(head.Header("Content-Length"), "7");
  EXPECT_EQ(ParseAnswer(client.ReadResponse()).body, "hello b");
}

TEST_F(ServerTest, RequestIdIsTakenOverOnlyWhereSane) {
  Start();
  EXPECT_EQ(Call(server->address(), "GET", "/id", "", "X-Request-Id: abc-1.2\r\n").body, "abc-1.2");
  const auto made = Call(server->address(), "GET", "/id", "", "X-Request-Id: a b<script>\r\n");
  EXPECT_EQ(made.body.size(), 32u);
  EXPECT_EQ(made.Header("X-Request-Id"), made.body);
}

TEST_F(ServerTest, ErrorsAndExceptionsBecomeJson) {
  Start();
  const auto error = Call(server->address(), "GET", "/error");
  EXPECT_EQ(error.status, 400);
  EXPECT_EQ(error.body,
            R"({"code":"InvalidArgument","message":"no","field":"/spec/x","reason":"Why"})");
  const auto thrown = Call(server->address(), "GET", "/throw");
  EXPECT_EQ(thrown.status, 500);
  EXPECT_THAT(thrown.body, Not(HasSubstr("boom")));
  const auto absent = Call(server->address(), "GET", "/absent");
  EXPECT_EQ(absent.status, 404);
  const auto method = Call(server->address(), "DELETE", "/hello/x");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.Header("Allow"), "GET, HEAD");
}

struct Bad {
  const char* name;
  std::string text;
  int status;
};
class Smuggling : public ServerTest, public testing::WithParamInterface<Bad> {};
TEST_P(Smuggling, IsRefusedAndTheConnectionEnds) {
  RawClient client(Start());
  client.Send(GetParam().text + "GET /hello/smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto all = client.ReadToEnd();
  EXPECT_THAT(all, StartsWith(fmt::format("HTTP/1.1 {} ", GetParam().status)));
  EXPECT_THAT(all, Not(HasSubstr("smuggled")));
}
INSTANTIATE_TEST_SUITE_P(
    Cases, Smuggling,
    testing::Values(
        Bad{"TeAndCl",
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: "
            "chunked\r\n\r\n0\r\n\r\n",
            400},
        Bad{"ClAndTe",
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: "
            "4\r\n\r\n0\r\n\r\n",
            400},
        Bad{"TwoCl",
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
            400},
        Bad{"TwoEqualCl",
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
            400},
        Bad{"TeGzip", "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
        Bad{"TeGzipChunked",
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            501},
        Bad{"TeIdentity", "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: identity\r\n\r\n",
            501},
        Bad{"TeIn10",
            "POST /echo HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        Bad{"ListOfEqualCl", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4, 4\r\n\r\nabcd",
            400},
        Bad{"HostIsTwoWords", "GET /hello/a HTTP/1.1\r\nHost: x y\r\n\r\n", 400},
        Bad{"HostIsFolded",
            "GET /hello/a HTTP/1.1\r\nHost: x\r\n Transfer-Encoding: chunked\r\n\r\n", 400},
        Bad{"HostIsPath", "GET /hello/a HTTP/1.1\r\nHost: x/y\r\n\r\n", 400},
        Bad{"SpaceBeforeColon", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length : 4\r\n\r\nabcd",
            400},
        Bad{"NegativeCl", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400},
        Bad{"PlusCl", "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +4\r\n\r\nabcd", 400},
        Bad{"HugeCl",
            "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
            400},
        Bad{"BadChunk",
            "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        Bad{"BareLf", "GET /echo HTTP/1.1\nHost: x\n\n", 505},
        Bad{"TwoHosts", "GET /echo HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
        Bad{"NoHost", "GET /echo HTTP/1.1\r\n\r\n", 400},
        Bad{"AbsoluteWithUser", "GET http://u@x/hello/a HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        Bad{"AbsoluteWithoutHost", "GET http:///hello/a HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        Bad{"AbsoluteTwoHosts", "GET http://x/hello/a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
        Bad{"AbsoluteNoHost", "GET http://x/hello/a HTTP/1.1\r\n\r\n", 400},
        Bad{"OtherScheme", "GET ftp://x/hello/a HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        Bad{"Connect", "CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
        Bad{"Http2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
        Bad{"NotHttp", "\x16\x03\x01\x02\r\n\r\n", 400},
        Bad{"NulInHeader", std::string("GET /echo HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n", 39),
            400},
        Bad{"HugeHeader",
            "GET /echo HTTP/1.1\r\nHost: x\r\nA: " + std::string(17000, 'a') + "\r\n\r\n", 431},
        Bad{"HugeTarget", "GET /" + std::string(17000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n", 431},
        Bad{"BodyNotRead", "POST /absent HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\n\r\n", 404}),
    [](const auto& info) { return std::string(info.param.name); });

struct PathCase {
  const char* path;
  int status;
};
TEST_F(ServerTest, TakesTheAbsoluteForm) {
  router.Add("GET", "/host", [](Request& r) {
    return Response::Text(200, fmt::format("{} {}", r.headers.Get("Host"), r.query));
  });
  Start();
  for (const auto& [target, answer] : {std::pair{"http://a.test:80/host?x=1", "a.test:80 x=1"},
                                       {"HTTPS://[::1]/host", "[::1] "}}) {
    RawClient client(server->address());
    client.Send(fmt::format("GET {} HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n", target));
    EXPECT_THAT(client.ReadToEnd(), HasSubstr(fmt::format("\r\n\r\n{}", answer))) << target;
  }
  RawClient client(server->address());
  client.Send("GET http://x?a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.ReadToEnd(), StartsWith("HTTP/1.1 404 ")) << "the path is /";
  RawClient dots(server->address());
  dots.Send("GET http://x/stream/../hello/x HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(dots.ReadToEnd(), StartsWith("HTTP/1.1 400 "));
}

TEST_F(ServerTest, PathGamesAreRefused) {
  Start();
  for (const auto& [path, status] :
       {PathCase{"/hello/../hello/x", 400}, PathCase{"/hello/%2e%2e", 400},
        PathCase{"/hello/.%2E/x", 400}, PathCase{"/hello/a%2Fb", 400},
        PathCase{"/hello/a%5cb", 400}, PathCase{"/hello/a\\b", 400}, PathCase{"/hello/a%00b", 400},
        PathCase{"/hello/%zz", 400}, PathCase{"/hello/", 400}, PathCase{"//hello/x", 404},
        PathCase{"/hello//x", 404}, PathCase{"/%68ello/x", 404}, PathCase{"/hello/x/", 404},
        PathCase{"/stream/../hello/x", 400}, PathCase{"/stream/%2e%2e%2fhello/x", 400},
        PathCase{"/stream/a%2fb", 200}, PathCase{"/stream/..;/x", 400}, PathCase{"/stream//a", 200},
        PathCase{"/hello/x?a=/../", 200}}) {
    EXPECT_EQ(Call(server->address(), "GET", path).status, status) << path;
  }
}

TEST_F(ServerTest, LimitsBodies) {
  Start();
  EXPECT_EQ(Call(server->address(), "POST", "/echo", std::string(100, 'a')).status, 200);
  EXPECT_EQ(Call(server->address(), "POST", "/echo", std::string(101, 'a')).status, 413);
  EXPECT_EQ(Call(server->address(), "POST", "/echo", std::string(5'000'000, 'a')).status, 413)
      << "answer lost";
  RawClient chunked(server->address());
  chunked.Send("POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 20; ++i) chunked.Send("a\r\n0123456789\r\n");
  EXPECT_EQ(ParseAnswer(chunked.ReadResponse()).status, 413);
}

TEST_F(ServerTest, ExpectContinue) {
  RawClient client(Start());
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.ReadResponse(), StartsWith("HTTP/1.1 100 "));
  client.Send("abc");
  EXPECT_EQ(ParseAnswer(client.ReadResponse()).body, "abc");
  // A body that is refused is not asked for.
  client.Send(
      "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3000\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.ReadResponse(), StartsWith("HTTP/1.1 413 "));
}

TEST_F(ServerTest, UploadsStreamToAWorker) {
  Start();
  EXPECT_EQ(Call(server->address(), "PUT", "/upload", std::string(3'000'000, 'a')).body, "3000000");
  EXPECT_EQ(Call(server->address(), "PUT", "/upload", std::string(10'000'001, 'a')).status, 413);
  EXPECT_EQ(Call(server->address(), "PUT", "/ignore", std::string(500'000, 'a')).body,
            "there already");
  RawClient cut(server->address());
  cut.Send("PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  cut.Close();
  EXPECT_TRUE(Eventually([&] { return server->connections() == 0; }));
}

TEST_F(ServerTest, GuardAnswersBeforeTheBodyIsSent) {
  RawClient client(Start());
  client.Send("POST /guarded HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  const auto answer = ParseAnswer(client.ReadResponse());
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.Header("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(Call(server->address(), "POST", "/guarded", "hi", "Authorization: yes\r\n").body, "hi");
}

TEST_F(ServerTest, SlowClientsAreCutOff) {
  RawClient head(Start());
  RawClient silent(server->address());
  RawClient body(server->address());
  head.Send("GET /hello/x HTTP/1.1\r\nHo");
  body.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nabc");
  for (int i = 0; i < 10; ++i) {  // dribbling does not help
    std::this_thread::sleep_for(50ms);
    head.Send("a");
  }
  EXPECT_TRUE(head.ClosedWithin(2s));
  EXPECT_TRUE(silent.ClosedWithin(2s));
  EXPECT_TRUE(Eventually([&] { return server->connections() == 0; }));
}

TEST_F(ServerTest, TooManyConnectionsAre503) {
  options.max_connections = 2;
  options.header_timeout = 5s;
  RawClient a(Start());
  RawClient b(server->address());
  ASSERT_TRUE(Eventually([&] { return server->connections() == 2; }));
  RawClient c(server->address());
  EXPECT_THAT(c.ReadToEnd(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\r\nRetry-After: 1\r\n"),
                                   HasSubstr("\r\nX-Request-Id: "), HasSubstr("\"Overloaded\"")));
  a.Close();
  ASSERT_TRUE(Eventually([&] { return server->connections() == 1; }));
  EXPECT_EQ(Call(server->address(), "GET", "/hello/x").status, 200);
}

TEST_F(ServerTest, FullQueueIs503) {
  options.workers = 1;
  options.max_queued = 1;
  RawClient a(Start());
  a.Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return slow == 1; }));
  // Of two more, one waits and the other is refused.
  std::atomic<int> refused{0}, answered{0};
  std::vector<std::jthread> more;
  for (int i = 0; i < 2; ++i) {
    more.emplace_back([&] {
      const auto status = Call(server->address(), "GET", "/slow").status;
      refused += status == 503;
      answered += status == 200;
    });
  }
  EXPECT_TRUE(Eventually([&] { return refused == 1; }));
  release = true;
  EXPECT_EQ(ParseAnswer(a.ReadResponse()).status, 200);
  more.clear();
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(answered, 1);
}

TEST_F(ServerTest, AStepOfWhatHasBegunWaitsForAWorkerAndTakesNoIoThread) {
  options.workers = 1;
  options.max_queued = 1;
  RawClient running(Start()), second(server->address()), third(server->address());
  running.Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return slow == 1; }));
  for (auto* client : {&second, &third}) client->Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return Counted("/slow", 503); })) << "the queue is not full";
  RawClient step(server->address());
  step.Send("GET /thread HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return checks == 1; }));
  release = true;
  EXPECT_EQ(ParseAnswer(step.ReadResponse()).body, "worker");
}

TEST_F(ServerTest, SlowUploadsHoldNoWorker) {
  options.workers = 1;
  options.body_timeout = 10s;
  Start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 5; ++i) {
    clients.push_back(std::make_unique<RawClient>(server->address()));
    clients.back()->Send("PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc");
  }
  ASSERT_TRUE(Eventually([&] { return uploads == 5; }));
  EXPECT_EQ(Call(server->address(), "GET", "/hello/x").status, 200);
  for (auto& client : clients) {
    client->Send("de");
    EXPECT_EQ(ParseAnswer(client->ReadResponse()).body, "5");
  }
  EXPECT_EQ(uploads, 0);
}

TEST_F(ServerTest, AnUploadThatIsRefusedOrCutIsDropped) {
  Start();
  EXPECT_EQ(Call(server->address(), "PUT", "/upload", "no").status, 422);
  EXPECT_EQ(Call(server->address(), "PUT", "/throwing", "x").status, 500);
  RawClient cut(server->address());
  cut.Send("PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc");
  ASSERT_TRUE(Eventually([&] { return uploads == 1; }));
  cut.Close();
  EXPECT_TRUE(Eventually([&] { return uploads == 0; }));
}

TEST_F(ServerTest, ABodyThatTakesTooLongIs408) {
  options.body_time = 200ms;
  options.body_rate = 1000;  // bytes a second
  Start();
  for (const char* head : {"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n",
                           "PUT /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 90\r\n\r\n"}) {
    RawClient client(server->address());
    client.Send(head);
    for (int i = 0; i < 7; ++i) {  // each piece comes in time
      client.Send("a");
      std::this_thread::sleep_for(50ms);
    }
    EXPECT_THAT(client.ReadToEnd(), AllOf(StartsWith("HTTP/1.1 408 "), HasSubstr("BodyTooSlow")));
  }
  EXPECT_EQ(uploads, 0);
}

TEST_F(ServerTest, BytesThatComeBuyABodyTime) {
  options.body_time = 10ms;
  options.body_rate = 10;  // bytes a second: 20 of them buy 2 s
  RawClient client(Start());
  client.Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 21\r\n\r\n" +
              std::string(20, 'a'));
  std::this_thread::sleep_for(100ms);
  client.Send("a");
  EXPECT_EQ(ParseAnswer(client.ReadResponse()).body.size(), 21u);
}

TEST_F(ServerTest, HandlersLearnThatTheClientIsGone) {
  RawClient client(Start());
  client.Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return slow == 1; }));
  client.Close();
  EXPECT_TRUE(Eventually([&] { return saw_gone.load(); }));
}

TEST_F(ServerTest, DeferredHandlersAnswerLater) {
  RawClient client(Start());
  client.Send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return std::lock_guard(mutex), later.size() == 1; }));
  std::thread([&] {
    later[0](Response::Text(200, "first"));
    later[0](Response::Text(200, "second"));
  }).join();
  EXPECT_EQ(ParseAnswer(client.ReadResponse()).body, "first");
  client.Send("GET /dropped HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(ParseAnswer(client.ReadResponse()).status, 500);
  client.Send("GET /later HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return std::lock_guard(mutex), later.size() == 2; }));
  client.Close();
  EXPECT_TRUE(Eventually([&] { return gone.stop_requested() && server->connections() == 0; }));
  later[1](Response::Text(200, "nobody listens"));
}

TEST_F(ServerTest, StreamsBothWays) {
  RawClient client(Start());
  client.Send(
      "POST /stream/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  std::this_thread::sleep_for(20ms);
  client.Send("2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(ParseAnswer(client.ReadResponse()).body, "abcde");
  EXPECT_EQ(Call(server->address(), "PURGE", "/stream/x", std::string(500'000, 'a')).body.size(),
            500'000u);
}

TEST_F(ServerTest, AStreamThatWaitsForABodyInStepsLosesNothingOfIt) {
  RawClient client(Start());
  client.Send("POST /patient HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
  // Also within a chunk's head and end, where the parser is in the middle of something.
  for (const char* part :
       {"5", "\r", "\nhel", "lo\r", "\n5;ext", "=1\r\n worl\r\n", "0\r\n", "\r\n"}) {
    const int before = waits;
    ASSERT_TRUE(Eventually([&] { return waits > before; })) << part;
    client.Send(part);
  }
  EXPECT_EQ(ParseAnswer(client.ReadResponse()).body, "hello worl");
  client.Send("POST /patient HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nwhole");
  EXPECT_EQ(ParseAnswer(client.ReadResponse()).body, "whole") << "the connection is as good as new";
}

TEST_F(ServerTest, WaitingInStepsBuysABodyNoTime) {
  options.body_time = 200ms;
  RawClient client(Start());
  client.Send("POST /patient HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhe");
  EXPECT_EQ(ParseAnswer(client.ReadResponse()).status, 408);
  EXPECT_GT(waits, 1);
}

TEST_F(ServerTest, ManyLongPollsHoldNoWorker) {
  options.workers = 2;
  options.header_timeout = options.idle_timeout = 10s;
  Start();
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < 500; ++i) {
    clients.push_back(std::make_unique<RawClient>(server->address()));
    clients.back()->Send("GET /wait?ms=20000 HTTP/1.1\r\nHost: x\r\n\r\n");
  }
  ASSERT_TRUE(Eventually([&] { return hub.waiting() == 500 && checks >= 500; }));
  EXPECT_EQ(Call(server->address(), "GET", "/hello/x").status, 200) << "workers are held";
  hub.Notify("other topic");
  value = 7;
  hub.Notify("topic");
  for (auto& client : clients) ASSERT_EQ(ParseAnswer(client->ReadResponse()).body, "7");
  EXPECT_EQ(hub.waiting(), 0u);
}

TEST_F(ServerTest, LongPollEndsAtItsDeadline) {
  Start();
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(Call(server->address(), "GET", "/wait?ms=100").body, "0");
  EXPECT_GE(std::chrono::steady_clock::now() - began, 100ms);
}

TEST_F(ServerTest, StopFinishesWhatRunsAndClosesTheRest) {
  options.idle_timeout = 10s;
  RawClient idle(Start());
  idle.Send("GET /hello/x HTTP/1.1\r\nHost: x\r\n\r\n");
  idle.ReadResponse();
  RawClient busy(server->address());
  busy.Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  RawClient poll(server->address());
  poll.Send("GET /wait?ms=20000 HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return slow == 1 && hub.waiting() == 1; }));
  std::jthread stop([&] { server->Stop(5s); });
  EXPECT_TRUE(idle.ClosedWithin(2s));
  EXPECT_EQ(ParseAnswer(poll.ReadResponse()).body, "0") << "a long poll answers at once";
  release = true;
  const auto answer = ParseAnswer(busy.ReadResponse());
  EXPECT_EQ(answer.body, "done");
  EXPECT_EQ(answer.Header("Connection"), "close");
}

TEST_F(ServerTest, StopWithoutGraceCutsWhatRuns) {
  RawClient busy(Start());
  busy.Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return slow == 1; }));
  server->Stop(0ms);
  EXPECT_TRUE(saw_gone);
}

size_t OpenDescriptors() {
  return static_cast<size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

TEST_F(ServerTest, AThousandRequestsLeaveNoDescriptorBehind) {
  Start();
  Call(server->address(), "GET", "/hello/x");
  ASSERT_TRUE(Eventually([&] { return server->connections() == 0; }));
  const auto before = OpenDescriptors();
  for (int i = 0; i < 200; ++i) {
    RawClient kept(server->address());
    for (int j = 0; j < 3; ++j) {
      kept.Send("GET /hello/x HTTP/1.1\r\nHost: x\r\n\r\n");
      ASSERT_EQ(ParseAnswer(kept.ReadResponse()).status, 200);
    }
    kept.Send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");  // given up at once
    kept.Close();
    RawClient(server->address())
        .Send("POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\nhalf");
  }
  EXPECT_TRUE(Eventually([&] { return server->connections() == 0 && OpenDescriptors() <= before; }))
      << before << " before, " << OpenDescriptors() << " after, " << server->connections()
      << " connections";
}

TEST_F(ServerTest, AConnectionThatComesBesideAStopIsClosedToo) {
  Start();
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(
      static_cast<uint16_t>(std::stoi(server->address().substr(server->address().rfind(':') + 1))));
  std::jthread client([&](std::stop_token stop) {
    std::vector<int> silent(20, -1);
    for (size_t n = 0; !stop.stop_requested(); n = (n + 1) % silent.size()) {
      ::close(std::exchange(silent[n], ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)));
      ::connect(silent[n], reinterpret_cast<const sockaddr*>(&address), sizeof address);
      std::this_thread::sleep_for(100us);
    }
    for (const int fd : silent) ::close(fd);
  });
  ASSERT_TRUE(Eventually([&] { return server->connections() > 5; }));
  const auto began = std::chrono::steady_clock::now();
  server->Stop(20s);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
}

TEST_F(ServerTest, CountsAnswersThatAreCut) {
  RawClient client(Start());
  client.Send("GET /cut HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.ReadToEnd(), testing::EndsWith("\r\n\r\nabc"));
  EXPECT_TRUE(Eventually([&] { return Counted("/cut", 200); }));
}

TEST_F(ServerTest, CountsRequests) {
  Start();
  Call(server->address(), "GET", "/hello/x");
  Call(server->address(), "GET", "/hello/y");
  EXPECT_TRUE(Eventually([&] {
    return metrics.Text().find(
               "sless_http_requests_total{route=\"/hello/{name}\",status=\"200\"} 2") !=
           std::string::npos;
  }));
}

}  // namespace
}  // namespace sless::http
