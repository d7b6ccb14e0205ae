#include "server/gateway/gateway.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

#include "client/base/testing/result_matchers.h"
#include "server/gateway/testing/fake_runtime.h"
#include "server/http/testing/raw_client.h"

namespace sless::gateway {
namespace {

using namespace std::chrono_literals;
using base::Code;
using base::IsError;
using base::IsOk;
using http::Call;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class FakeAuth final : public auth::Authenticator {
 public:
  base::Result<auth::Caller> Check(std::string_view authorization) override {
    if (authorization == "Bearer good") return auth::Caller{"t"};
    return base::Err(Code::kUnauthenticated, "send a token");
  }
};

bool Eventually(const std::function<bool()>& holds, std::chrono::milliseconds bound = 8s) {
  const auto end = std::chrono::steady_clock::now() + bound;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

/// Remembers which revisions were warned of.
class WarningLog final : public base::Logger {
 public:
  void Log(base::Level level, std::string_view,
           std::initializer_list<base::LogField> fields) override {
    if (level != base::Level::kWarn) return;
    std::lock_guard lock(mutex_);
    for (const auto& field : fields) {
      if (field.key == "revision") warned_.insert(std::get<std::string>(field.value));
    }
  }
  bool WarnedOf(const runtime::RevisionKey& revision) {
    std::lock_guard lock(mutex_);
    return warned_.contains(revision.ToString());
  }

 private:
  std::mutex mutex_;
  std::set<std::string> warned_;
};

class GatewayTest : public testing::Test {
 protected:
  explicit GatewayTest(GatewayOptions options = {},
                       http::ServerOptions server_options = {.workers = 4}) {
    gateway = MakeGateway({io, runtime, auth, metrics, clock, log}, std::move(options));
    http::Router router;
    gateway->RegisterRoutes(router);
    auto started = http::Server::Start(server_options, std::move(router), {io, log, metrics});
    EXPECT_THAT(started, IsOk());
    server = std::move(*started);
  }
  ~GatewayTest() override {
    server->Stop(0ms);
    if (gateway) gateway->Stop();
    gateway.reset();
  }

  static FunctionRoute MakeRoute(int64_t revision,
                                 std::vector<HttpRoute> http = {HttpRoute{"all", true, {}}}) {
    FunctionRoute route;
    route.ns = "default";
    route.name = "f";
    if (revision > 0) route.revision = runtime::RevisionKey{"default", "f", revision};
    route.spec.timeout_sec = 5;
    route.http = std::move(http);
    return route;
  }
  static runtime::RevisionKey Rev(int64_t n) { return {"default", "f", n}; }
  http::Answer Get(const std::string& path, std::string_view extra = "") {
    return Call(server->address(), "GET", path, "", extra);
  }
  http::Answer Owner(const std::string& path = "") {
    return Get("/fn/default/f" + path, "Authorization: Bearer good\r\n");
  }
  Prepared PrepareUntilDone(int64_t revision, const Scaling& scaling = {}) {
    Prepared prepared;
    EXPECT_TRUE(Eventually([&] {
      auto result = gateway->Prepare(Rev(revision), MakeRoute(revision).spec, scaling);
      EXPECT_THAT(result, IsOk());
      prepared = *result;
      return prepared.readiness != Readiness::kStarting;
    }));
    return prepared;
  }

  WarningLog log;
  base::SystemClock clock;
  observe::Registry metrics;
  http::IoPool io{2};
  FakeRuntime runtime;
  FakeAuth auth;
  std::unique_ptr<Gateway> gateway;
  std::unique_ptr<http::Server> server;
};

TEST_F(GatewayTest, UnknownAndPrivateFunctionsAre404WithAWayOut) {
  EXPECT_EQ(Get("/fn/default/f").status, 404);
  gateway->Publish(MakeRoute(1, {}));
  const auto answer = Get("/fn/default/f/x");
  EXPECT_EQ(answer.status, 404);
  EXPECT_THAT(answer.body, HasSubstr("private"));
  EXPECT_THAT(answer.body, HasSubstr("sless_trigger"));
  EXPECT_EQ(runtime.starts, 0);
}

TEST_F(GatewayTest, OneStartForAHundredColdCalls) {
  auto route = MakeRoute(1);
  route.spec.concurrency = 100;
  route.scaling.max_replicas = 1;
  gateway->Publish(std::move(route));
  std::atomic<int> ok{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 100; ++i) {
      threads.emplace_back([&] { ok += Get("/fn/default/f/p").status == 200; });
    }
  }
  EXPECT_EQ(ok, 100);
  EXPECT_EQ(runtime.starts, 1);
}

TEST_F(GatewayTest, AnOldRevisionThatCannotBeStoppedNowIsStoppedLater) {
  gateway->Publish(MakeRoute(1));
  EXPECT_EQ(Get("/fn/default/f").status, 200);
  EXPECT_EQ(PrepareUntilDone(2).readiness, Readiness::kReady);
  runtime.unreachable = true;
  gateway->Publish(MakeRoute(2));
  EXPECT_EQ(Get("/fn/default/f").status, 200);
  EXPECT_TRUE(Eventually([&] { return log.WarnedOf(Rev(1)); })) << "it was tried in vain";
  EXPECT_EQ(runtime.Running(Rev(1)), 1);
  runtime.unreachable = false;
  EXPECT_TRUE(Eventually([&] { return runtime.Running(Rev(1)) == 0; }));
  EXPECT_EQ(Get("/fn/default/f").status, 200);
}

TEST_F(GatewayTest, AProbeThatNeverEndsHoldsUpNoEnd) {
  server->Stop(0ms);
  io.Stop();
  ASSERT_THAT(gateway->Prepare(Rev(1), MakeRoute(1).spec, {}), IsOk());
  ASSERT_TRUE(Eventually([&] { return runtime.Running(Rev(1)) == 1; }));
  std::this_thread::sleep_for(
      300ms);  // until the keeper has asked for the probe, which nobody carries out
  const auto began = std::chrono::steady_clock::now();
  gateway->Stop();
  gateway.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s);
}

TEST_F(GatewayTest, ConcurrencyIsKeptAndLoadScalesUp) {
  auto route = MakeRoute(1);
  route.spec.concurrency = 2;
  route.scaling.max_replicas = 3;
  gateway->Publish(std::move(route));
  std::atomic<int> ok{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 30; ++i)
      threads.emplace_back([&] { ok += Get("/fn/default/f?sleep=50").status == 200; });
  }
  EXPECT_EQ(ok, 30);
  EXPECT_EQ(runtime.starts, 3);
  EXPECT_LE(runtime.most_at_once, 2);
}

TEST_F(GatewayTest, IdleReplicasStopDownToTheLeast) {
  auto route = MakeRoute(1);
  route.scaling = {1, 3, 1s};
  gateway->Publish(route);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back([&] { Get("/fn/default/f?sleep=200"); });
  }
  EXPECT_EQ(runtime.Running(Rev(1)), 3);
  EXPECT_TRUE(Eventually([&] { return runtime.Running(Rev(1)) == 1; }));
  // One with the same idle time that may have none, called after that, has none: the time is over.
  auto other = MakeRoute(1);
  other.name = other.revision->name = "g";
  other.scaling = {0, 3, 1s};
  gateway->Publish(other);
  EXPECT_EQ(Get("/fn/default/g").status, 200);
  EXPECT_TRUE(Eventually([&] { return runtime.Running(*other.revision) == 0; }));
  EXPECT_EQ(runtime.Running(Rev(1)), 1);
  route.scaling = {0, 3, 0s};  // all triggers are off: cost nothing at once
  gateway->Publish(route);
  EXPECT_TRUE(Eventually([&] { return runtime.Running(Rev(1)) == 0; }, 500ms));
  EXPECT_EQ(Get("/fn/default/f").status, 200) << "a call wakes it";
}

TEST_F(GatewayTest, SwitchUnderLoadFailsNothingAndMixesNothing) {
  gateway->Publish(MakeRoute(1));
  ASSERT_EQ(Get("/fn/default/f").status, 200);
  std::atomic<bool> stop{false};
  std::atomic<int> bad{0}, good{0};
  std::atomic<int64_t> published{1};
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const auto least = published.load();
        const auto answer = Get("/fn/default/f/x?sleep=3");
        const auto revision = std::atoll(answer.body.c_str());
        const bool fine = answer.status == 200 && revision >= least &&
                          answer.Header("X-Sless-Revision") == std::to_string(revision);
        fine ? ++good : ++bad;
        if (!fine) ADD_FAILURE() << answer.head << "\n" << answer.body << " least " << least;
      }
    });
  }
  for (int64_t revision = 2; revision <= 6; ++revision) {
    EXPECT_EQ(PrepareUntilDone(revision).readiness, Readiness::kReady);
    gateway->Publish(MakeRoute(revision));
    published = revision;
    const int before = good;
    EXPECT_TRUE(Eventually([&] { return good >= before + 10; }));
  }
  stop = true;
  threads.clear();
  EXPECT_EQ(bad, 0);
  EXPECT_TRUE(Eventually([&] {
    for (int64_t r = 1; r < 6; ++r) {
      if (runtime.Running(Rev(r)) > 0) return false;
    }
    return true;
  })) << "an old revision still runs";
}

TEST_F(GatewayTest, FailedPrepareTellsWhyAndLeavesTheOldServing) {
  gateway->Publish(MakeRoute(1));
  ASSERT_EQ(Get("/fn/default/f").status, 200);
  runtime.fail_start = true;
  const auto prepared = PrepareUntilDone(2);
  EXPECT_EQ(prepared.readiness, Readiness::kFailed);
  ASSERT_TRUE(prepared.failure);
  EXPECT_THAT(prepared.failure->message, HasSubstr("ImportError"));
  EXPECT_EQ(prepared.failure->file, "handler.py");
  gateway->Abandon(Rev(2));
  gateway->Abandon(Rev(1));  // serves: not touched
  EXPECT_TRUE(Eventually([&] { return runtime.Observe(Rev(2)).empty(); }));
  EXPECT_THAT(Get("/fn/default/f").body, StartsWith("1 "));
}

TEST_F(GatewayTest, CrashLoopIsA503WithTheReasonAtOnce) {
  runtime.fail_start = true;
  gateway->Publish(MakeRoute(1));
  const auto began = std::chrono::steady_clock::now();
  const auto answer = Get("/fn/default/f");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s);
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("\"function default/f does not start\""));
  EXPECT_THAT(answer.body, HasSubstr("\"reason\":\"StartFailed\""));
  EXPECT_THAT(Owner().body, HasSubstr("does not start: StartFailed: ImportError: no module"));
  EXPECT_THAT(Owner().body, Not(HasSubstr("secret log line")));
  EXPECT_THAT(gateway->Observe("default", "f").note, HasSubstr("ImportError"));
  const auto invoked = gateway->Invoke({"default", "f", "{}", "r", "invoke"}, {});
  ASSERT_THAT(invoked, IsError(Code::kUnavailable, HasSubstr("ImportError")));
  EXPECT_EQ(invoked.error().source.log_tail.size(), 1u);
}

TEST_F(GatewayTest, RuntimeThatRefusesIs503AndIsAskedAgain) {
  runtime.refuse = true;
  gateway->Publish(MakeRoute(1));
  const auto answer = Get("/fn/default/f");
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("\"function default/f cannot be started\""));
  EXPECT_THAT(Owner().body, HasSubstr("cannot be started: no room"));
  runtime.refuse = false;
  EXPECT_TRUE(Eventually([&] { return Get("/fn/default/f").status == 200; }));
}

TEST_F(GatewayTest, NotReadyAndSwitchedOffSayWhich) {
  auto route = MakeRoute(0);
  EXPECT_THAT(Get("/fn/default/f").body, HasSubstr("there is no function"));
  gateway->Publish(route);
  EXPECT_THAT(Get("/fn/default/f").body, HasSubstr("does not serve yet, it is being built"));
  route = MakeRoute(1);
  route.switched_off = true;
  gateway->Publish(route);
  const auto answer = Get("/fn/default/f");
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("replicas = 0"));
  EXPECT_EQ(runtime.starts, 0);
}

TEST_F(GatewayTest, DetailsAreForThoseWithAToken) {
  const std::string whole = "its layers cannot be built again: /var/lib/sless/layers: no space";
  auto route = MakeRoute(0, {{"open", true, {}}, {"shut", true, {"token", {}, "/shut"}}});
  route.not_ready_reason = whole;
  gateway->Publish(route);
  for (const char* extra : {"", "Authorization: Bearer bad\r\n", "Authorization: Basic good\r\n"}) {
    const auto answer = Get("/fn/default/f", extra);
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.body,
              R"({"code":"Unavailable","message":"function default/f does not serve yet, )"
              R"(its layers cannot be built again","reason":"NotReady"})")
        << extra;
    EXPECT_EQ(answer.Header("Retry-After"), "1");
  }
  EXPECT_THAT(Owner().body, HasSubstr(whole));
  EXPECT_THAT(Owner("/shut").body, HasSubstr(whole));
  EXPECT_EQ(Get("/fn/default/f/shut").status, 401);
  const auto invoked = Call(server->address(), "POST", "/v1/namespaces/default/functions/f/invoke",
                            "{}", "Authorization: Bearer good\r\n");
  EXPECT_EQ(invoked.status, 503);
  EXPECT_THAT(invoked.body, HasSubstr(whole));
  EXPECT_THAT(gateway->Invoke({"default", "f", "{}", "r", "job"}, {}),
              IsError(Code::kUnavailable, HasSubstr(whole)));
}

TEST_F(GatewayTest, ReplicaDeathInTheMiddleIs502AndRefusedCallsAreRepeated) {
  gateway->Publish(MakeRoute(1));
  ASSERT_EQ(Get("/fn/default/f").status, 200);
  runtime.refuse_next = true;
  EXPECT_EQ(Get("/fn/default/f").status, 200) << "refused before it began";
  http::RawClient client(server->address());
  client.Send("GET /fn/default/f?sleep=3000 HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually(
      [&] { return gateway->Observe("default", "f").in_flight == 1 && runtime.calls == 3; }));
  std::jthread crash([&] { runtime.Crash(Rev(1), 60s); });
  const auto answer = http::ParseAnswer(client.ReadResponse());
  EXPECT_EQ(answer.status, 502);
  EXPECT_THAT(answer.body, HasSubstr("ReplicaDied"));
}

TEST_F(GatewayTest, TimeoutIs504AndTheCallIsEnded) {
  auto route = MakeRoute(1);
  route.spec.timeout_sec = 1;
  gateway->Publish(route);
  const auto answer = Get("/fn/default/f?sleep=8000");
  EXPECT_EQ(answer.status, 504);
  EXPECT_THAT(answer.body, HasSubstr("timeout_sec = 1"));
  EXPECT_TRUE(Eventually([&] { return runtime.cancelled == 1; }));
  EXPECT_EQ(gateway->Observe("default", "f").in_flight, 0);
}

TEST_F(GatewayTest, ClientThatLeavesEndsTheCallAndTheWait) {
  gateway->Publish(MakeRoute(1));
  ASSERT_EQ(Get("/fn/default/f").status, 200);
  http::RawClient client(server->address());
  client.Send("GET /fn/default/f?sleep=8000 HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return gateway->Observe("default", "f").in_flight == 1; }));
  client.Close();
  EXPECT_TRUE(Eventually(
      [&] { return runtime.cancelled == 1 && gateway->Observe("default", "f").in_flight == 0; }));
  runtime.start_time = 5s;
  auto route = MakeRoute(2);
  gateway->Publish(route);
  http::RawClient waiting(server->address());
  waiting.Send("GET /fn/default/f HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return gateway->Observe("default", "f").waiting == 1; }));
  waiting.Close();
  EXPECT_TRUE(Eventually([&] { return gateway->Observe("default", "f").waiting == 0; }));
}

TEST_F(GatewayTest, HeadersAreOursWhereTheyMatter) {
  gateway->Publish(MakeRoute(1));
  const auto answer = Get(
      "/fn/default/f/a%20b?q=1",
      "X-Sless-Source: job\r\nX-Sless-Evil: 1\r\nX-Forwarded-For: 1.2.3.4\r\nX-Request-Id: abc\r\n"
      "Connection: keep-alive, X-Drop\r\nX-Drop: 1\r\nTE: trailers\r\nX-Keep: "
      "yes\r\nAuthorization: Basic x\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "1 /a%20b ");
  EXPECT_EQ(answer.Header("Echo-X-Sless-Source"), "http");
  EXPECT_EQ(answer.Header("Echo-X-Sless-Evil"), "");
  EXPECT_EQ(answer.Header("Echo-X-Sless-Prefix"), "/fn/default/f");
  EXPECT_EQ(answer.Header("Echo-X-Forwarded-For"), "127.0.0.1");
  EXPECT_EQ(answer.Header("Echo-X-Forwarded-Host"), "test");
  EXPECT_EQ(answer.Header("Echo-X-Request-Id"), "abc");
  EXPECT_EQ(answer.Header("Echo-X-Drop"), "");
  EXPECT_EQ(answer.Header("Echo-TE"), "");
  EXPECT_EQ(answer.Header("Echo-X-Keep"), "yes");
  EXPECT_EQ(answer.Header("Echo-Authorization"), "Basic x");
  EXPECT_EQ(answer.Header("X-Request-Id"), "abc");
  EXPECT_EQ(answer.Header("X-Sless-Revision"), "1");
  EXPECT_EQ(Call(server->address(), "HEAD", "/fn/default/f").status, 200);
}

TEST_F(GatewayTest, ConnectionNamesHeadersOfOneHopOnly) {
  gateway->Publish(MakeRoute(1));
  const auto answer =
      Get("/fn/default/f",
          "Connection: Host, X-Forwarded-For, X-Request-Id, X-Sless-Source\r\nX-Request-Id: abc\r\n"
          "Connection: X-Drop\r\nX-Drop: 1\r\n");
  EXPECT_EQ(answer.Header("Echo-Host"), "test");
  EXPECT_EQ(answer.Header("Echo-X-Forwarded-For"), "127.0.0.1");
  EXPECT_EQ(answer.Header("Echo-X-Request-Id"), "abc");
  EXPECT_EQ(answer.Header("Echo-X-Sless-Source"), "http");
  EXPECT_EQ(answer.Header("Echo-X-Drop"), "") << "of a second line";
}

class BehindAProxy : public GatewayTest {
 protected:
  BehindAProxy() : GatewayTest({.trusted_proxies = *base::AddressSet::Parse("127.0.0.0/8")}) {}
};
TEST_F(BehindAProxy, FunctionsSeeTheClient) {
  gateway->Publish(MakeRoute(1));
  const auto answer = Get("/fn/default/f",
                          "X-Forwarded-For: 1.1.1.1, 198.51.100.1\r\nX-Forwarded-For: 127.0.0.2\r\n"
                          "X-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\n"
                          "Connection: X-Forwarded-For\r\nX-Forwarded-Port: 1\r\n");
  EXPECT_EQ(answer.Header("Echo-X-Forwarded-For"), "198.51.100.1");
  EXPECT_EQ(answer.Header("Echo-X-Forwarded-Proto"), "https");
  EXPECT_EQ(answer.Header("Echo-X-Forwarded-Host"), "shop.example");
  EXPECT_EQ(answer.Header("Echo-X-Forwarded-Port"), "");
  EXPECT_EQ(answer.Header("Echo-Host"), "test");
}

TEST_F(GatewayTest, BodiesPassBothWaysWithinLimits) {
  gateway->Publish(MakeRoute(1));
  const std::string body(3'000'000, 'b');
  EXPECT_EQ(Call(server->address(), "POST", "/fn/default/f", body).body, "1 / " + body);
  EXPECT_EQ(Call(server->address(), "POST", "/fn/default/f", std::string(6 * 1024 * 1024 + 1, 'b'))
                .status,
            413);
  EXPECT_EQ(Get("/fn/default/f?size=20000000").body.size(), 20'000'000u);
  EXPECT_EQ(Get("/fn/default/f?error=1").status, 502);
  EXPECT_EQ(Get("/fn/default/f?error=1").Header("X-Sless-Error"), "");
}

TEST_F(GatewayTest, AFunctionLearnsTheProtocolAndTheLengthOfItsClient) {
  gateway->Publish(MakeRoute(1));
  const auto say = [&](std::string_view head) {
    http::RawClient client(server->address());
    client.Send(head);
    return http::ParseAnswer(client.ReadResponse());
  };
  auto answer = say("DELETE /fn/default/f HTTP/1.1\r\nHost: x\r\nX-Sless-Protocol: HTTP/9\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Echo-X-Sless-Protocol"), "HTTP/1.1");
  EXPECT_EQ(answer.Header("Echo-Content-Length"), "");
  answer = say("POST /fn/default/f HTTP/1.0\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Echo-X-Sless-Protocol"), "HTTP/1.0");
  EXPECT_EQ(answer.Header("Echo-Content-Length"), "0");
}

TEST_F(GatewayTest, SlowUploadHoldsNoReplica) {
  gateway->Publish(MakeRoute(1));
  http::RawClient slow(server->address());
  slow.Send(
      "POST /fn/default/f HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n"
      "Expect: 100-continue\r\n\r\n");
  ASSERT_THAT(slow.ReadResponse(), StartsWith("HTTP/1.1 100 ")) << "its body is being read";
  EXPECT_EQ(gateway->Observe("default", "f").in_flight, 0);
  EXPECT_EQ(runtime.starts, 0);
}

TEST_F(GatewayTest, TokenTriggersNeedATokenAndKeepItFromTheFunction) {
  HttpRoute open{"open", true, {"none", {}, "/"}};
  HttpRoute admin{"admin", true, {"token", {}, "/admin"}};
  gateway->Publish(MakeRoute(1, {open, admin}));
  EXPECT_EQ(Get("/fn/default/f/x").status, 200);
  for (const char* path :
       {"/admin", "/admin/x", "/adm%69n", "//admin", "/admin%2Fx", "/%61dmin/x"}) {
    EXPECT_EQ(Get(std::string("/fn/default/f") + path).status, 401) << path;
  }
  EXPECT_EQ(Get("/fn/default/f/administrator").status, 200);
  for (const char* path : {"/x/../admin", "/x/%2e%2e/admin", "/x%2f..%2fadmin", "/..%5cadmin"}) {
    EXPECT_EQ(Get(std::string("/fn/default/f") + path).status, 400) << path;
  }
  const auto answer = Get("/fn/default/f/admin", "Authorization: Bearer good\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.Header("Echo-Authorization"), "");
}

TEST_F(GatewayTest, TriggersByMethodAndState) {
  HttpRoute get{"reader", true, {"none", {"GET"}, "/"}};
  HttpRoute post{"writer", true, {"token", {"POST"}, "/"}};
  HttpRoute off{"off", false, {"none", {}, "/off"}};
  gateway->Publish(MakeRoute(1, {get, post, off}));
  EXPECT_EQ(Get("/fn/default/f").status, 200);
  EXPECT_EQ(Call(server->address(), "POST", "/fn/default/f", "x").status, 401);
  const auto refused = Call(server->address(), "DELETE", "/fn/default/f");
  EXPECT_EQ(refused.status, 405);
  EXPECT_EQ(refused.Header("X-Sless-Revision"), "1") << "what serves, on answers of slessd too";
  EXPECT_EQ(refused.Header("Allow"), "GET, HEAD, POST");
  const auto disabled = Get("/fn/default/f/off/x");
  EXPECT_EQ(disabled.status, 503);
  EXPECT_THAT(disabled.body, HasSubstr("\\\"off\\\""));
}

TEST_F(GatewayTest, ApiAndFunctionsDoNotReachEachOther) {
  gateway->Publish(MakeRoute(1));
  for (const char* path : {"/fn/default/f/../../../v1/info", "/v1/../fn/default/f",
                           "/fn/default/..%2f..%2fv1", "/fn/default%2Ff", "/%66n/default/f",
                           "/v1/namespaces/default/functions/f/invoke/../../../../fn/default/f",
                           "/fn//f", "/fn/default/"}) {
    const auto status = Get(path).status;
    EXPECT_TRUE(status == 400 || status == 404) << path << " " << status;
  }
}

TEST_F(GatewayTest, InvokeGivesResultsAndErrors) {
  gateway->Publish(MakeRoute(1, {}));
  const auto result = gateway->Invoke({"default", "f", "{}", "id", "job"}, {});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->result_json, "{\"revision\":1}");
  EXPECT_EQ(result->revision, 1);
  EXPECT_EQ(result->log_tail.size(), 1u);
  const auto raised = gateway->Invoke({"default", "f", "\"raise\"", "id", "job"}, {});
  ASSERT_THAT(raised, IsError(Code::kFailedPrecondition, HasSubstr("fake")));
  EXPECT_EQ(raised.error().reason, "HandlerError");
  EXPECT_EQ(raised.error().source.line, 3);
  EXPECT_THAT(gateway->Invoke({"default", "g", "{}", "id", "job"}, {}),
              IsError(Code::kNotFound, HasSubstr("default/g")));

  const auto path = "/v1/namespaces/default/functions/f/invoke";
  EXPECT_EQ(Call(server->address(), "POST", path, "{}").status, 401);
  const auto answer = Call(server->address(), "POST", path, "{}", "Authorization: Bearer good\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "{\"revision\":1}");
  EXPECT_EQ(answer.Header("X-Sless-Revision"), "1");
  EXPECT_EQ(
      Call(server->address(), "POST", path, "{nonsense", "Authorization: Bearer good\r\n").status,
      400);
  EXPECT_EQ(Call(server->address(), "POST", path, "{}",
                 "Authorization: Bearer good\r\nContent-Encoding: gzip\r\n")
                .status,
            415);
  EXPECT_EQ(
      Call(server->address(), "POST", path, "\"raise\"", "Authorization: Bearer good\r\n").status,
      422);
}

TEST_F(GatewayTest, InvokeEndsOnAStopRequest) {
  runtime.start_time = 20s;
  gateway->Publish(MakeRoute(1));
  std::stop_source source;
  std::jthread later([&] {
    Eventually([&] { return gateway->Observe("default", "f").waiting == 1; });
    source.request_stop();
  });
  EXPECT_THAT(gateway->Invoke({"default", "f", "{}", "id", "job"}, source.get_token()),
              IsError(Code::kCancelled, HasSubstr("")));
}

TEST_F(GatewayTest, ACancelledInvokeReturnsWhenItsCallHasEnded) {
  gateway->Publish(MakeRoute(1));
  std::stop_source cancel, stop;
  EventCall call{"default", "f", "\"slow to end\"", "id", "job", cancel.get_token()};
  std::jthread later([&] {
    Eventually([&] { return runtime.calls == 1; });
    cancel.request_stop();
  });
  EXPECT_THAT(gateway->Invoke(call, stop.get_token()), IsOk()) << "it ended well after all";
  EXPECT_EQ(runtime.cancelled, 1);
  // Nobody waits at a stop.
  call.cancel = {};
  std::jthread again([&] {
    Eventually([&] { return runtime.calls == 2; });
    stop.request_stop();
  });
  EXPECT_THAT(gateway->Invoke(call, stop.get_token()), IsError(Code::kCancelled, HasSubstr("")));
  EXPECT_EQ(runtime.cancelled, 1);
  EXPECT_TRUE(Eventually([&] { return runtime.cancelled == 2; }));
  // What was cancelled before it began does not begin.
  call.cancel = cancel.get_token();
  EXPECT_THAT(gateway->Invoke(call, {}), IsError(Code::kCancelled, HasSubstr("")));
  EXPECT_EQ(runtime.calls, 2);
}

TEST_F(GatewayTest, RemovedFunctionIsGoneAndStops) {
  gateway->Publish(MakeRoute(1));
  ASSERT_EQ(Get("/fn/default/f").status, 200);
  EXPECT_THAT(metrics.Text(), HasSubstr("function=\"default/f\""));
  gateway->Remove("default", "f");
  EXPECT_EQ(Get("/fn/default/f").status, 404);
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("function=\"default/f\""))) << "its numbers go too";
  EXPECT_TRUE(Eventually([&] { return runtime.Observe(Rev(1)).empty(); }));
  gateway->Publish(MakeRoute(1));
  EXPECT_EQ(Get("/fn/default/f").status, 200) << "made again under the same number";
}

TEST_F(GatewayTest, TellsOfChanges) {
  std::atomic<int> told{0};
  gateway->OnChange([&](const std::string&, const std::string& name) { told += name == "f"; });
  gateway->Publish(MakeRoute(1));
  Get("/fn/default/f");
  EXPECT_TRUE(Eventually([&] { return told > 0; }));
  EXPECT_EQ(gateway->Observe("default", "f").ready, 1);
  EXPECT_TRUE(Eventually([&] {
    return metrics.Text().find(
               "sless_invocations_total{function=\"default/f\",source=\"http\",outcome=\"ok\"} "
               "1") != std::string::npos;
  }));
  EXPECT_THAT(metrics.Text(), HasSubstr("sless_cold_starts_total{function=\"default/f\"} 1"));
}

TEST_F(GatewayTest, AnAnswerToAnEventThatIsTooLargeIsCounted) {
  gateway->Publish(MakeRoute(1));
  EXPECT_THAT(gateway->Invoke({"default", "f", "\"huge\"", "id", "job"}, {}),
              IsError(Code::kTooLarge, HasSubstr("32 MiB")));
  EXPECT_THAT(metrics.Text(), HasSubstr("source=\"job\",outcome=\"TooLarge\"} 1"));
}

TEST_F(GatewayTest, CallsGoToASecondReplicaWhileTheFirstWaitsForItsOwn) {
  auto route = MakeRoute(1);
  route.spec.concurrency = 4;
  route.scaling.max_replicas = 2;
  gateway->Publish(std::move(route));
  std::jthread slow([&] { Get("/fn/default/f/x?stuck=1&sleep=3000"); });
  EXPECT_TRUE(Eventually([&] { return runtime.calls == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Get("/fn/default/f/x").status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_EQ(runtime.starts, 2);
}

class Impatient : public GatewayTest {
 protected:
  Impatient() : GatewayTest({.refusing_for = 0ms}) {}
};

TEST_F(Impatient, AReplicaThatRefusesEveryCallAndRunsNoneIsReplaced) {
  gateway->Publish(MakeRoute(1));
  EXPECT_EQ(Get("/fn/default/f/x").status, 200);
  // Refused, sent again until the replica has been replaced; the new one is told the same.
  EXPECT_EQ(Get("/fn/default/f/x?wedge=1").status, 503);
  EXPECT_EQ(Get("/fn/default/f/x").status, 200);
  EXPECT_GE(runtime.starts, 2);
}

TEST_F(GatewayTest, AReplicaThatRefusesForAMomentIsLeftAlone) {
  gateway->Publish(MakeRoute(1));
  EXPECT_EQ(Get("/fn/default/f/x?busy=1").status, 503);
  EXPECT_EQ(Get("/fn/default/f/x").status, 200);
  EXPECT_EQ(runtime.starts, 1);
}

class Uploads : public GatewayTest {
 protected:
  explicit Uploads(std::chrono::milliseconds patience = 20s, size_t max_body = 60'000'000)
      : GatewayTest({.max_body = max_body, .first_bytes = 1000, .upload_patience = patience}) {
    auto route = MakeRoute(1);
    route.scaling.max_replicas = 1;
    gateway->Publish(std::move(route));
    EXPECT_EQ(Get("/fn/default/f").status, 200);
  }
  std::string Head(size_t length) {
    return fmt::format("POST /fn/default/f HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n",
                       length);
  }
  bool Holds(int places) {
    return Eventually([&] { return gateway->Observe("default", "f").in_flight == places; });
  }
  bool Received(size_t bytes) {
    return Eventually([&] { return runtime.received == bytes; });
  }
  const std::string part = std::string(3000, 'p');
};
TEST_F(Uploads, GoToTheReplicaAsTheyCome) {
  http::RawClient client(server->address());
  client.Send(Head(9000) + part);
  EXPECT_TRUE(Received(3000));
  EXPECT_TRUE(Holds(1));
  client.Send(part);
  EXPECT_TRUE(Received(6000));
  EXPECT_EQ(runtime.calls, 1) << "the one of the set-up";
  client.Send(part);
  const auto answer = http::ParseAnswer(client.ReadResponse());
  EXPECT_EQ(answer.body, "1 / " + part + part + part);
  EXPECT_EQ(answer.Header("Echo-Content-Length"), "9000");
  EXPECT_TRUE(Holds(0));
}
TEST_F(Uploads, ChunksToo) {
  const std::string chunk = "bb8\r\n" + part + "\r\n";
  http::RawClient client(server->address());
  client.Send("POST /fn/default/f HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" +
              chunk);
  EXPECT_TRUE(Received(3000));
  client.Send(chunk);
  EXPECT_TRUE(Received(6000));
  client.Send("0\r\n\r\n");
  EXPECT_EQ(http::ParseAnswer(client.ReadResponse()).body, "1 / " + part + part);
}
TEST_F(Uploads, OneThatEndsEarlyBeginsNoCall) {
  http::RawClient broken(server->address()), gone(server->address()), large(server->address());
  const std::string chunked =
      "POST /fn/default/f HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nbb8\r\n" + part +
      "\r\n";
  broken.Send(chunked);
  EXPECT_TRUE(Received(3000));
  broken.Send("nonsense\r\n");
  auto answer = http::ParseAnswer(broken.ReadResponse());
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("not framed as HTTP wants: ")) << "for its sender to read";
  EXPECT_TRUE(Holds(0));
  gone.Send(Head(9000) + part);
  EXPECT_TRUE(Received(6000));
  EXPECT_TRUE(Holds(1));
  gone.Close();
  EXPECT_TRUE(Holds(0));
  large.Send(chunked);
  EXPECT_TRUE(Received(9000));
  const std::string mb(1'000'000, 'm');
  for (int i = 0; i < 60; ++i) large.Send("f4240\r\n" + mb + "\r\n");
  EXPECT_EQ(http::ParseAnswer(large.ReadResponse()).status, 413);
  EXPECT_TRUE(Holds(0));
  EXPECT_EQ(runtime.calls, 1);
  EXPECT_EQ(runtime.starts, 1);
}
TEST_F(Uploads, AreSentAgainWhereTheReplicaDoesNotTakeThem) {
  runtime.refuse_next = true;
  http::RawClient refused(server->address());
  refused.Send(Head(6000) + part);
  EXPECT_TRUE(Received(3000));
  refused.Send(part);
  EXPECT_EQ(http::ParseAnswer(refused.ReadResponse()).body, "1 / " + part + part);
  EXPECT_EQ(runtime.received, 12'000u);

  http::RawClient dropped(server->address());
  dropped.Send(Head(9000) + part);
  EXPECT_TRUE(Received(15'000));
  runtime.Kill(Rev(1), runtime.Observe(Rev(1)).front().id);
  dropped.Send(part);  // more than one write, until the connection is known to be gone
  std::this_thread::sleep_for(50ms);
  dropped.Send(part);
  EXPECT_EQ(http::ParseAnswer(dropped.ReadResponse()).body, "1 / " + part + part + part);
  EXPECT_EQ(runtime.calls, 3);
}

TEST_F(Uploads, OneThatStallsLeavesItsPlaceToOthers) {
  http::RawClient slow(server->address());
  slow.Send(Head(6000) + part);
  EXPECT_TRUE(Received(3000));
  EXPECT_TRUE(Holds(1));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(Get("/fn/default/f").status, 200);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s) << "of 20";
  slow.Send(part);
  EXPECT_EQ(http::ParseAnswer(slow.ReadResponse()).body, "1 / " + part + part);
}
class ImpatientUploads : public Uploads {
 protected:
  ImpatientUploads() : Uploads(500ms) {}
};
TEST_F(ImpatientUploads, OneThatStallsGivesItsPlaceBack) {
  http::RawClient slow(server->address());
  slow.Send(Head(6000) + part);
  EXPECT_TRUE(Received(3000));
  EXPECT_TRUE(Holds(0));
  EXPECT_EQ(runtime.calls, 1);
  slow.Send(part);
  EXPECT_EQ(http::ParseAnswer(slow.ReadResponse()).body, "1 / " + part + part);
  EXPECT_EQ(runtime.starts, 1) << "nobody blames the replica";
}
TEST_F(ImpatientUploads, OneThatIsSlowFromTheStartTakesNone) {
  http::RawClient slow(server->address());
  slow.Send(
      "POST /fn/default/f HTTP/1.1\r\nHost: x\r\nContent-Length: 60000\r\n"
      "Expect: 100-continue\r\n\r\n");
  ASSERT_THAT(slow.ReadResponse(), StartsWith("HTTP/1.1 100 ")) << "its body is being read";
  std::this_thread::sleep_for(50ms);
  slow.Send(part);  // that leaves a second for the rest
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(runtime.received, 0u);
  slow.Send(std::string(57'000, 'r'));
  EXPECT_EQ(http::ParseAnswer(slow.ReadResponse()).status, 200);
  EXPECT_EQ(runtime.received, 60'000u);
}
TEST_F(ImpatientUploads, OneThatTheReplicaDoesNotReadIs504) {
  auto route = MakeRoute(2);
  route.spec.timeout_sec = 1;
  gateway->Publish(route);
  ASSERT_EQ(Get("/fn/default/f").status, 200);
  // More than the sockets hold.
  const auto answer =
      Call(server->address(), "POST", "/fn/default/f?deaf=1", std::string(50'000'000, 'b'));
  EXPECT_EQ(answer.status, 504);
  EXPECT_THAT(answer.body, HasSubstr("timeout_sec = 1"));
  EXPECT_EQ(runtime.calls, 2);
}

class TinyPieces : public Uploads {
 protected:
  TinyPieces() : Uploads(500ms, 130'000) {}
};
TEST_F(TinyPieces, HoldTheirPlaceNoLonger) {
  std::string tiny;
  for (int i = 0; i < 60'000; ++i) tiny += "1\r\nt\r\n";
  http::RawClient slow(server->address());
  slow.Send("POST /fn/default/f HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nea60\r\n" +
            std::string(60'000, 'p') + "\r\n");
  EXPECT_TRUE(Received(60'000));
  std::jthread upload([&] { slow.Send(tiny + "0\r\n\r\n"); });
  EXPECT_EQ(Get("/fn/default/f").status, 200);
  EXPECT_EQ(runtime.calls, 2) << "the upload holds no place";
  EXPECT_EQ(http::ParseAnswer(slow.ReadResponse()).body.size(), 120'004u);
  EXPECT_EQ(runtime.calls, 3);
  EXPECT_EQ(runtime.starts, 1);
}

class SlowBodies : public GatewayTest {
 protected:
  SlowBodies() : GatewayTest({}, {.workers = 4, .body_time = 300ms, .body_rate = 100'000}) {}
  /// One byte each 20 ms.
  std::string Trickle(http::RawClient& client) {
    std::jthread more([&](std::stop_token stop) {
      while (!stop.stop_requested() && client.Send("x")) std::this_thread::sleep_for(20ms);
    });
    return client.ReadResponse();
  }
};
TEST_F(SlowBodies, Are408) {
  gateway->Publish(MakeRoute(1));
  const auto began = std::chrono::steady_clock::now();
  http::RawClient slow(server->address());
  slow.Send("POST /fn/default/f HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
  auto answer = http::ParseAnswer(Trickle(slow));
  EXPECT_EQ(answer.status, 408);
  EXPECT_THAT(answer.body, HasSubstr("BodyTooSlow"));
  EXPECT_EQ(answer.Header("Connection"), "close");
  EXPECT_GE(std::chrono::steady_clock::now() - began, 300ms);

  http::RawClient invoke(server->address());
  invoke.Send(
      "POST /v1/namespaces/default/functions/f/invoke HTTP/1.1\r\nHost: x\r\n"
      "Authorization: Bearer good\r\nContent-Length: 100000\r\n\r\n");
  EXPECT_EQ(http::ParseAnswer(Trickle(invoke)).status, 408);
  EXPECT_EQ(runtime.starts, 0);
}
TEST_F(SlowBodies, WhatHasComeBuysTime) {
  gateway->Publish(MakeRoute(1));
  http::RawClient client(server->address());
  client.Send("POST /fn/default/f HTTP/1.1\r\nHost: x\r\nContent-Length: 200001\r\n\r\n" +
              std::string(200'000, 'b'));
  std::this_thread::sleep_for(600ms);  // of 2.3 s
  client.Send("b");
  EXPECT_EQ(http::ParseAnswer(client.ReadResponse()).status, 200);
}

class LittleRoom : public GatewayTest {
 protected:
  LittleRoom()
      : GatewayTest(
            {.max_buffered = 250'000, .max_buffered_of_one = 100'000, .first_bytes = 92'000}) {
    for (const char* name : {"f", "g", "h"}) {
      auto route = MakeRoute(1);
      route.name = route.revision->name = name;
      gateway->Publish(std::move(route));
    }
  }
  /// A body that never ends; the first 90,000 bytes of it have come.
  std::unique_ptr<http::RawClient> Hold(const std::string& name) {
    auto client = std::make_unique<http::RawClient>(server->address());
    client->Send("POST /fn/default/" + name +
                 " HTTP/1.1\r\nHost: x\r\nContent-Length: 95000\r\n\r\n" +
                 std::string(90'000, 'b'));
    return client;
  }
  int Post(const std::string& path, size_t size) {
    const auto answer = Call(server->address(), "POST", path, '"' + std::string(size, 'b') + '"',
                             "Authorization: Bearer good\r\n");
    if (answer.status == 503) {
      EXPECT_THAT(answer.body, HasSubstr("\"Overloaded\""));
    }
    return answer.status;
  }
};
TEST_F(LittleRoom, BodiesOfOneFunctionTakeAShareOnly) {
  std::unique_ptr<http::RawClient> held;
  // Where the probe came first, the held body was the one too many.
  EXPECT_TRUE(Eventually([&] {
    held = Hold("f");
    std::this_thread::sleep_for(20ms);
    return Post("/fn/default/f", 20'000) == 503;
  }));
  EXPECT_EQ(Post("/v1/namespaces/default/functions/f/invoke", 20'000), 503);
  EXPECT_EQ(Post("/fn/default/f", 1000), 200) << "there is room for a small one";
  EXPECT_EQ(Post("/fn/default/g", 90'000), 200) << "others have room";
  EXPECT_EQ(Post("/v1/namespaces/default/functions/none/invoke", 20'000), 404);
  held->Close();
  EXPECT_TRUE(Eventually([&] { return Post("/fn/default/f", 90'000) == 200; }))
      << "what was held is given back";
}
TEST_F(LittleRoom, AllBodiesTogetherHaveALimitToo) {
  std::unique_ptr<http::RawClient> f, g;
  EXPECT_TRUE(Eventually([&] {
    f = Hold("f");
    g = Hold("g");
    std::this_thread::sleep_for(20ms);
    return Post("/fn/default/h", 90'000) == 503;
  }));
  EXPECT_EQ(Post("/fn/default/h", 20'000), 200);
}

class FewWaiters : public GatewayTest {
 protected:
  FewWaiters() : GatewayTest({.max_waiting = 2, .restoring = true}) {}
};
TEST_F(FewWaiters, MoreThanTheLimitAre503) {
  runtime.start_time = 10s;
  gateway->Publish(MakeRoute(1));
  http::RawClient a(server->address()), b(server->address());
  a.Send("GET /fn/default/f HTTP/1.1\r\nHost: x\r\n\r\n");
  b.Send("GET /fn/default/f HTTP/1.1\r\nHost: x\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return gateway->Observe("default", "f").waiting == 2; }));
  const auto answer = Get("/fn/default/f");
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("TooManyWaiting"));
  EXPECT_EQ(answer.Header("Retry-After"), "1");
}
TEST_F(FewWaiters, WhileRestoringCallsWaitForTheirFunction) {
  std::jthread later([&] {
    std::this_thread::sleep_for(100ms);
    gateway->Publish(MakeRoute(1));
    gateway->Restored();
  });
  EXPECT_EQ(Get("/fn/default/f").status, 200);
  later.join();
  EXPECT_EQ(Get("/fn/default/g").status, 404);
}

}  // namespace
}  // namespace sless::gateway
