#include "server/http/upstream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>

#include "client/base/testing/result_matchers.h"
#include "server/http/head_writer.h"

namespace sless::http {
namespace {

using namespace std::chrono_literals;

Task<int> Get(std::unique_ptr<UpstreamCall> call, std::string target) {
  Headers headers;
  const auto sent = co_await call->Open("GET", std::move(target), std::move(headers), 0);
  if (!sent) co_return 0;
  const auto head = co_await call->ReadHead();
  if (!head) co_return 0;
  for (;;) {
    const auto piece = co_await call->ReadBody();
    if (!piece) co_return 0;
    if (piece->empty()) co_return head->status;
  }
}

class UpstreamTest : public testing::Test {
 protected:
  std::unique_ptr<Server> Serve() {
    Router router;
    router.Add("GET", "/x", [](Request&) { return Response::Text(200, "hello"); });
    auto server = Server::Start({.workers = 2}, std::move(router), {io_, log_, metrics_});
    EXPECT_THAT(server, base::IsOk());
    return std::move(*server);
  }
  int Call(Upstream& upstream, const std::string& address, const std::string& target = "/x") {
    const auto executor = NextExecutor(io_);
    auto call = upstream.Call(executor, address, std::chrono::steady_clock::now() + 5s);
    return boost::asio::co_spawn(executor, Get(std::move(call), target), boost::asio::use_future)
        .get();
  }

  base::NullLogger log_;
  observe::Registry metrics_;
  IoPool io_{2};
};

TEST_F(UpstreamTest, ConnectionsAreKept) {
  Upstream upstream;
  const auto server = Serve();
  for (int i = 0; i < 50; ++i) EXPECT_EQ(Call(upstream, server->address()), 200);
  EXPECT_LE(server->connections(), 2u) << "one per I/O thread";
}

TEST_F(UpstreamTest, AllHeadersThatARunnerMaySendAreTaken) {
  Router router;
  router.Add("GET", "/x", [](Request& request) {
    auto response = Response::Text(200, "hello");
    const size_t taken = std::string_view("Content-Type: text/plain; charset=utf-8\r\n").size();
    const size_t more = request.Query("more") ? 8192 : 0;
    response.headers.Add("X", std::string(kMaxAnswerHeaders - taken - 5 + more, 'x'));
    return response;
  });
  const auto server = Server::Start({.workers = 2}, std::move(router), {io_, log_, metrics_});
  ASSERT_THAT(server, base::IsOk());
  Upstream upstream;
  EXPECT_EQ(Call(upstream, (*server)->address()), 200);
  EXPECT_EQ(Call(upstream, (*server)->address(), "/x?more=1"), 0);
}

TEST_F(UpstreamTest, ConnectionsToAnEndpointThatNobodyCallsAnyMoreAreClosed) {
  Upstream upstream(100ms);
  const auto replaced = Serve(), serving = Serve();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Call(upstream, replaced->address()), 200);
  EXPECT_GT(replaced->connections(), 0u);
  for (int i = 0; i < 200 && replaced->connections() > 0; ++i) {
    EXPECT_EQ(Call(upstream, serving->address()), 200);
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_EQ(replaced->connections(), 0u);
}

TEST_F(UpstreamTest, AnAnswerThatHasBegunIsReadBeyondTheDeadline) {
  Router router;
  const std::string large(8 << 20, 'x');
  router.Add("GET", "/x", [&](Request&) { return Response::Text(200, large); });
  const auto server = Server::Start({.workers = 2}, std::move(router), {io_, log_, metrics_});
  ASSERT_THAT(server, base::IsOk());
  Upstream upstream;
  const auto executor = NextExecutor(io_);
  const auto call =
      upstream.Call(executor, (*server)->address(), std::chrono::steady_clock::now() + 2s);
  const auto read = [&]() -> Task<std::string> {
    Headers headers;
    const auto sent = co_await call->Open("GET", "/x", std::move(headers), 0);
    if (!sent) co_return sent.error().message;
    const auto head = co_await call->ReadHead();
    if (!head) co_return head.error().message;
    boost::asio::steady_timer slow(executor, 2200ms);
    co_await slow.async_wait(boost::asio::use_awaitable);
    std::string body;
    for (;;) {
      const auto piece = co_await call->ReadBody();
      if (!piece) co_return piece.error().message;
      if (piece->empty()) co_return body;
      body += *piece;
    }
  };
  EXPECT_EQ(boost::asio::co_spawn(executor, read(), boost::asio::use_future).get().size(),
            large.size());
}

TEST_F(UpstreamTest, WhoFinishesSendingStillGetsTheAnswer) {
  Router router;
  std::atomic<int> begun{0};
  std::vector<std::jthread> threads;
  router.AddDeferred(
      "POST", "/x",
      [&](Request request, Responder respond) {
        threads.emplace_back([request = std::move(request), respond = std::move(respond), &begun] {
          ++begun;
          while (!request.gone.stop_requested()) std::this_thread::sleep_for(1ms);
          std::this_thread::sleep_for(50ms);
          respond(Response::Text(200, "ended"));
        });
      },
      {.half_close = true});
  auto server = Server::Start({.workers = 2}, std::move(router), {io_, log_, metrics_});
  ASSERT_THAT(server, base::IsOk());
  Upstream upstream;
  const auto executor = NextExecutor(io_);
  const auto call =
      upstream.Call(executor, (*server)->address(), std::chrono::steady_clock::now() + 5s);
  const auto send = [&]() -> Task<bool> {
    Headers headers;
    auto sent = co_await call->Open("POST", "/x", std::move(headers), 2);
    if (sent) sent = co_await call->WriteBody("{}");
    co_return sent.has_value();
  };
  ASSERT_TRUE(boost::asio::co_spawn(executor, send(), boost::asio::use_future).get());
  for (int i = 0; i < 1000 && begun == 0; ++i) std::this_thread::sleep_for(1ms);
  ASSERT_EQ(begun, 1);
  const auto finish = [&]() -> Task<std::string> {
    call->FinishSending();
    const auto head = co_await call->ReadHead();
    if (!head) co_return head.error().message;
    const auto piece = co_await call->ReadBody();
    co_return piece ? std::string(*piece) : piece.error().message;
  };
  EXPECT_EQ(boost::asio::co_spawn(executor, finish(), boost::asio::use_future).get(), "ended");
}

}  // namespace
}  // namespace sless::http
