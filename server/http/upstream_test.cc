#include "server/http/upstream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>

#include "client/base/testing/result_matchers.h"

namespace sless::http {
namespace {

using namespace std::chrono_literals;

Task<int> Get(std::unique_ptr<UpstreamCall> call) {
  Headers headers;
  const auto sent = co_await call->Open("GET", "/x", std::move(headers), 0);
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
  int Call(Upstream& upstream, const std::string& address) {
    const auto executor = NextExecutor(io_);
    auto call = upstream.Call(executor, address, std::chrono::steady_clock::now() + 5s);
    return boost::asio::co_spawn(executor, Get(std::move(call)), boost::asio::use_future).get();
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

}  // namespace
}  // namespace sless::http
