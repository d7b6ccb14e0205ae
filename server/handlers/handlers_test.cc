#include "server/handlers/handlers.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "client/api/fields.h"
#include "client/api/job.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "client/base/testing/result_matchers.h"
#include "client/source/source.h"
#include "server/artifact/filesystem/filesystem_store.h"
#include "server/auth/tokens.h"
#include "server/gateway/gateway.h"
#include "server/gateway/testing/fake_runtime.h"
#include "server/handlers/testing/document.h"
#include "server/http/server.h"
#include "server/http/testing/raw_client.h"
#include "server/store/memory/memory_store.h"
#include "server/store/typed.h"

namespace sless::handlers {
namespace {

using namespace std::chrono_literals;
using base::IsOk;
using nlohmann::json;
using testing::HasSubstr;

class FakeLogs final : public invocations::LogStore {
 public:
  void Append(const std::string&, const std::string&, invocations::LogRecord record) override {
    records.push_back(std::move(record));
  }
  base::Result<std::vector<invocations::LogRecord>> Read(
      const std::string&, const std::string&, const invocations::LogQuery& query) const override {
    last = query;
    ++reading;
    for (int i = 0; slow && i < 20'000; ++i) std::this_thread::sleep_for(1ms);
    return records;
  }
  void Remove(const std::string&, const std::string&, int64_t) override {}
  std::vector<invocations::LogRecord> records;
  mutable invocations::LogQuery last;
  mutable std::atomic<int> reading{0};
  std::atomic<bool> slow{false};
};

std::string Zip(const source::Tree& tree) {
  std::string out;
  EXPECT_THAT(source::WriteZip(tree,
                               [&](std::string_view bytes) {
                                 out += bytes;
                                 return base::Ok();
                               }),
              IsOk());
  return out;
}

class HandlersTest : public testing::Test {
 protected:
  HandlersTest()
      : dir(std::filesystem::temp_directory_path() / ("sless_handlers_" + base::RandomHex(6))) {
    std::filesystem::create_directories(dir);
    store = store::MakeMemoryStore(clock);
    auto opened = artifact::OpenFilesystemStore(dir / "artifacts");
    EXPECT_THAT(opened, IsOk());
    artifacts = std::move(*opened);
    auth = auth::MakeAuthenticator(*store, clock);
    auto made = auth::CreateToken(*store, "test");
    EXPECT_THAT(made, IsOk());
    bearer = "Authorization: Bearer " + made->Reveal() + "\r\n";
    subscription = WakeOnChange(*store, hub);
    gateway = gateway::MakeGateway({io, runtime, *auth, metrics, clock, log});
    http::Router router;
    gateway->RegisterRoutes(router);
    RegisterRoutes(router, {*store,
                            *artifacts,
                            logs,
                            *auth,
                            metrics,
                            clock,
                            log,
                            hub,
                            "http://example.test",
                            {"python3.11"},
                            [this]() -> base::Status {
                              return ready ? base::Ok()
                                           : base::Err(base::Code::kUnavailable, "restoring");
                            }});
    for (const auto& route : router.routes()) served.emplace_back(route.method, route.pattern);
    auto started = http::Server::Start({.workers = 4}, std::move(router), {io, log, metrics});
    EXPECT_THAT(started, IsOk());
    server = std::move(*started);
    auto inline_tree =
        source::InlineTree("python3.11", "handler.handle", "def handle(e):\n  return 1\n");
    EXPECT_THAT(inline_tree, IsOk());
    tree = *inline_tree;
    hash = source::TreeHash(tree);
  }
  ~HandlersTest() override {
    server->Stop(0ms);
    gateway->Stop();
    subscription.reset();
    std::filesystem::remove_all(dir);
  }

  http::Answer Do(std::string_view method, const std::string& path, const std::string& body = "",
                  std::string_view extra = "") {
    return Call(method, path, body, bearer + std::string(extra));
  }
  // Each request and answer of each test is held against the document.
  http::Answer Call(std::string_view method, const std::string& path, const std::string& body = "",
                    const std::string& headers = "") {
    if (!document) {
      document.emplace(http::Call(server->address(), "GET", "/v1/openapi.json", "", bearer).body);
    }
    auto answer = http::Call(server->address(), method, path, body, headers);
    EXPECT_EQ(document->Problem({std::string(method), path, body, headers}, answer), "")
        << method << " " << path << " " << answer.status;
    return answer;
  }
  json Json(const http::Answer& answer) { return base::ParseJson(answer.body).value_or(json()); }
  static json Body(json spec) {
    json body;
    body["spec"] = std::move(spec);
    return body;
  }
  json FunctionBody() {
    return Body({{"runtime", "python3.11"}, {"source", {{"type", "dir"}, {"hash", hash}}}});
  }
  void UploadCode() { EXPECT_EQ(Do("PUT", code_path(), Zip(tree)).status, 201); }
  std::string code_path() const { return "/v1/namespaces/default/code/" + hash; }
  void SetStatus(const std::string& phase, int64_t generation) {
    EXPECT_THAT((store::MutateStatus<api::Function>(*store, "default", "f",
                                                    [&](api::Function& f) {
                                                      f.status.phase = phase;
                                                      f.status.observed_generation = generation;
                                                      return base::Ok();
                                                    })),
                IsOk());
  }

  const std::string f = "/v1/namespaces/default/functions/f";
  std::filesystem::path dir;
  base::NullLogger log;
  base::SystemClock clock;
  observe::Registry metrics;
  http::IoPool io{1};
  http::WakeHub hub;
  FakeLogs logs;
  std::unique_ptr<store::ObjectStore> store;
  std::unique_ptr<artifact::ArtifactStore> artifacts;
  std::unique_ptr<auth::Authenticator> auth;
  std::unique_ptr<store::Subscription> subscription;
  gateway::FakeRuntime runtime;
  std::unique_ptr<gateway::Gateway> gateway;
  std::unique_ptr<http::Server> server;
  std::string bearer;
  source::Tree tree;
  std::string hash;
  std::vector<std::pair<std::string, std::string>> served;  // method and pattern
  std::optional<Document> document;
  std::atomic<bool> ready{true};
};

TEST_F(HandlersTest, WithoutATokenOnlyHealthAndMetricsAnswer) {
  for (const char* path : {"/healthz", "/readyz", "/metrics"})
    EXPECT_EQ(Call("GET", path).status, 200) << path;
  for (const char* path :
       {"/v1/info", "/v1/namespaces", "/v1/openapi.json", "/v1/namespaces/default/functions"}) {
    EXPECT_EQ(Call("GET", path).status, 401) << path;
    EXPECT_EQ(Call("GET", path, "", "Authorization: Bearer sless_test_00\r\n").status, 401) << path;
    EXPECT_EQ(Do("GET", path).status, 200) << path;
  }
  ready = false;
  const auto restoring = Call("GET", "/readyz");
  EXPECT_EQ(restoring.status, 503);
  EXPECT_EQ(restoring.Header("Retry-After"), "1");
  EXPECT_EQ(Json(Do("GET", "/v1/info"))["externalUrl"], "http://example.test");
}

TEST_F(HandlersTest, HealthAnswersWhileAllWorkersAreBusy) {
  logs.slow = true;
  std::vector<std::unique_ptr<http::RawClient>> busy;
  for (int i = 0; i < 4; ++i) {
    busy.push_back(std::make_unique<http::RawClient>(server->address()));
    busy.back()->Send("GET /v1/namespaces/default/functions/f/logs HTTP/1.1\r\nHost: x\r\n" +
                      bearer + "\r\n");
  }
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (logs.reading < 4 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(1ms);
  ASSERT_EQ(logs.reading, 4);
  for (const char* path : {"/healthz", "/readyz"}) {
    http::RawClient client(server->address());
    client.Send(fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n\r\n", path));
    EXPECT_EQ(http::ParseAnswer(client.ReadResponse()).status, 200) << path;
  }
  logs.slow = false;
}

TEST_F(HandlersTest, CodeIsUploadedOnceAndChecked) {
  EXPECT_EQ(Do("HEAD", code_path()).status, 404);
  UploadCode();
  EXPECT_EQ(Do("HEAD", code_path()).status, 200);
  EXPECT_EQ(Do("PUT", code_path(), "not even a zip").status, 200)
      << "there already: nothing is read";
  const auto other = "/v1/namespaces/default/code/sha256:" + std::string(64, '0');
  const auto mismatch = Do("PUT", other, Zip(tree));
  EXPECT_EQ(mismatch.status, 422);
  EXPECT_THAT(mismatch.body, HasSubstr(hash));
  EXPECT_THAT(mismatch.body, HasSubstr("sha256:000"));
  const auto broken = Do("PUT", other, "not a zip");
  EXPECT_EQ(broken.status, 400);
  EXPECT_EQ(Json(broken)["reason"], "BadArchive");
  EXPECT_EQ(Do("PUT", "/v1/namespaces/default/code/sha256:xyz", "z").status, 400);
  EXPECT_EQ(Do("GET", code_path()).status, 405);
  EXPECT_EQ(Do("HEAD", "/v1/namespaces/elsewhere/code/" + hash).status, 404)
      << "a namespace learns of another's code";
}

TEST_F(HandlersTest, PutCreatesChangesNothingTwiceAndReplaces) {
  const auto missing = Do("PUT", f, FunctionBody().dump());
  EXPECT_EQ(missing.status, 422);
  EXPECT_EQ(Json(missing)["reason"], "SourceMissing");
  EXPECT_EQ(Json(missing)["field"], "/spec/source/hash");
  UploadCode();
  auto body = FunctionBody();
  body["metadata"]["annotations"]["a"] = "b";
  body["status"]["phase"] = "Ready";  // ignored
  const auto created = Do("PUT", f, body.dump(), "If-None-Match: *\r\n");
  ASSERT_EQ(created.status, 201) << created.body;
  const auto first = Json(created);
  EXPECT_EQ(first["kind"], "Function");
  EXPECT_EQ(first["status"]["phase"], "Pending");
  EXPECT_EQ(first["metadata"]["generation"], 1);
  EXPECT_EQ(first["metadata"]["annotations"]["a"], "b");
  EXPECT_EQ(Do("PUT", f, body.dump(), "If-None-Match: *\r\n").status, 409);
  const auto same = Do("PUT", f, body.dump());
  EXPECT_EQ(same.status, 200);
  EXPECT_EQ(Json(same)["metadata"], first["metadata"]);
  EXPECT_EQ(Do("PUT", f, created.body).status, 200) << "what was read can be sent back";
  body["spec"]["memoryMb"] = 512;
  EXPECT_EQ(Do("PUT", f, body.dump(), "If-Match: \"wrong\"\r\n").status, 412);
  const auto version = first["metadata"]["resourceVersion"].get<std::string>();
  const auto changed = Do("PUT", f, body.dump(), "If-Match: \"" + version + "\"\r\n");
  EXPECT_EQ(changed.status, 200);
  EXPECT_EQ(Json(changed)["metadata"]["generation"], 2);
  const std::string g = "/v1/namespaces/default/functions/g";
  for (const char* match : {"\"1\"", "*"}) {
    EXPECT_EQ(Do("PUT", g, body.dump(), fmt::format("If-Match: {}\r\n", match)).status, 412);
  }
  EXPECT_EQ(Do("GET", g).status, 404) << "If-Match creates nothing";
  EXPECT_EQ(Do("PUT", f, body.dump(), "If-Match: *\r\n").status, 200);
  for (const char* name : {"codeHash", "environment", "timeoutSec", "replicas"})
    body["spec"][name] = nullptr;
  EXPECT_EQ(Do("PUT", f, body.dump()).status, 200) << "null is the default";
}

TEST_F(HandlersTest, AStaleBodyIsRefused) {
  UploadCode();
  const auto first = Do("PUT", f, FunctionBody().dump());
  ASSERT_EQ(first.status, 201);
  auto mine = Json(first), theirs = Json(first);
  theirs["spec"]["memoryMb"] = 512;
  ASSERT_EQ(Do("PUT", f, theirs.dump()).status, 200);
  mine["spec"]["timeoutSec"] = 7;
  const auto stale = Do("PUT", f, mine.dump());
  EXPECT_EQ(stale.status, 409) << stale.body;
  EXPECT_EQ(Json(stale)["code"], "Aborted");
  EXPECT_EQ(Json(stale)["reason"], "Conflict");
  EXPECT_EQ(Json(stale)["field"], "/metadata/resourceVersion");
  EXPECT_EQ(Json(Do("GET", f))["spec"]["memoryMb"], 512);
  mine["metadata"].erase("resourceVersion");
  EXPECT_EQ(Do("PUT", f, mine.dump()).status, 200) << "who names no version means any";
  auto gone = theirs;
  gone["metadata"]["name"] = "g";
  const auto missing = Do("PUT", "/v1/namespaces/default/functions/g", gone.dump());
  EXPECT_EQ(missing.status, 409);
  EXPECT_THAT(missing.body, HasSubstr("leave metadata.resourceVersion out"));
}

TEST_F(HandlersTest, InlineCodeMustHaveItsHash) {
  const std::string text = "def handle(e):\n  return 1\n";  // that of `hash`
  const auto body = [&](const std::string& code, const std::string& its_hash,
                        const std::string& entrypoint = "handler.handle") {
    return Body({{"runtime", "python3.11"},
                 {"entrypoint", entrypoint},
                 {"source", {{"type", "code"}, {"code", code}, {"hash", its_hash}}}})
        .dump();
  };
  const auto refused = [&](const http::Answer& answer) {
    EXPECT_EQ(answer.status, 422) << answer.body;
    EXPECT_EQ(Json(answer)["reason"], "HashMismatch");
    EXPECT_EQ(Json(answer)["field"], "/spec/source/hash");
  };
  refused(Do("PUT", f, body(text + "# other", hash)));
  ASSERT_EQ(Do("PUT", f, body(text, hash)).status, 201);
  EXPECT_EQ(Do("PUT", f, body(text, hash)).status, 200);
  refused(Do("PUT", f, body(text + "# other", hash)));
  refused(Do("PUT", f, body(text, hash, "other.handle")));  // the file has another name
  const auto patch = Do("PATCH", f, R"({"spec":{"source":{"code":"def handle(e): return 2"}}})",
                        "Content-Type: application/merge-patch+json\r\n");
  refused(patch);
  EXPECT_THAT(patch.body, HasSubstr("handler.py"));
}

struct Bad {
  std::string body;
  std::string field;
};
TEST_F(HandlersTest, BadBodiesNameTheField) {
  UploadCode();
  auto with = [&](const std::string& pointer, const json& value) {
    auto body = FunctionBody();
    body[json::json_pointer(pointer)] = value;
    return body.dump();
  };
  const std::vector<Bad> cases{{"", ""},
                               {"{", ""},
                               {"[]", ""},
                               {"{}", "/spec"},
                               {with("/extra", 1), "/extra"},
                               {with("/kind", "Job"), "/kind"},
                               {with("/spec/memory", 1), "/spec/memory"},
                               {with("/spec/memoryMb", "x"), "/spec/memoryMb"},
                               {with("/spec/memoryMb", 1), "/spec/memoryMb"},
                               {with("/spec/source/hsh", "x"), "/spec/source/hsh"},
                               {with("/spec/environment", {{"A", 1}}), "/spec/environment/A"},
                               {with("/metadata/name", "other"), "/metadata/name"},
                               {with("/metadata/namespace", "other"), "/metadata/namespace"},
                               {with("/metadata/labels", json::object()), "/metadata/labels"},
                               {with("/spec/runtime", "python3.12"), "/spec/runtime"}};
  for (const auto& [body, field] : cases) {
    const auto answer = Do("PUT", f, body);
    EXPECT_EQ(answer.status, 400) << body << answer.body;
    EXPECT_EQ(Json(answer).value("field", ""), field) << body << answer.body;
    if (field.starts_with("/metadata/name")) continue;  // a schema cannot tell
    EXPECT_NE(document->BodyProblem({"PUT", f, body, ""}), "") << body;
  }
  EXPECT_EQ(Do("PUT", "/v1/namespaces/default/functions/UPPER", FunctionBody().dump()).status, 400);
  EXPECT_EQ(Do("PUT", f, std::string(1024 * 1024 + 1, ' ')).status, 413);
  const auto encoded = Do("PUT", f, FunctionBody().dump(), "Content-Encoding: gzip\r\n");
  EXPECT_EQ(encoded.status, 415);
  EXPECT_THAT(encoded.body, HasSubstr("want no Content-Encoding, got \\\"gzip"));
  EXPECT_EQ(Do("GET", f + "?wait=nonsense").status, 400);
}

TEST_F(HandlersTest, PatchMergesSpecAndAnnotations) {
  UploadCode();
  auto body = FunctionBody();
  body["metadata"]["annotations"]["sless.dev/creating"] = "true";
  body["spec"]["environment"] = {{"A", "1"}, {"B", "2"}};
  ASSERT_EQ(Do("PUT", f, body.dump()).status, 201);
  const auto type = "Content-Type: application/merge-patch+json\r\n";
  const auto patched = Do(
      "PATCH", f,
      R"({"metadata":{"annotations":{"sless.dev/creating":null}},"spec":{"environment":{"A":null,"C":"3"}}})",
      type);
  ASSERT_EQ(patched.status, 200) << patched.body;
  EXPECT_EQ(Json(patched)["metadata"]["annotations"], json::object());
  EXPECT_EQ(Json(patched)["spec"]["environment"], (json{{"B", "2"}, {"C", "3"}}));
  EXPECT_EQ(Do("PATCH", f, R"({"status":{}})", type).status, 400);
  EXPECT_EQ(Do("PATCH", f, R"({"metadata":{"uid":"x"}})", type).status, 400);
  EXPECT_EQ(Do("PATCH", f, "{}", "Content-Type: text/plain\r\n").status, 415);
  EXPECT_EQ(Do("PATCH", "/v1/namespaces/default/functions/g", "{}", type).status, 404);
}

TEST_F(HandlersTest, LongPollAnswersWhenTheStatusIsFinal) {
  UploadCode();
  ASSERT_EQ(Do("PUT", f, FunctionBody().dump()).status, 201);
  EXPECT_EQ(Json(Do("GET", f + "?wait=ready&timeout=0"))["status"]["phase"], "Pending");
  std::jthread later([&] {
    std::this_thread::sleep_for(50ms);
    SetStatus("Building", 1);
    SetStatus("Ready", 0);  // of an older generation
    std::this_thread::sleep_for(50ms);
    SetStatus("Ready", 1);
  });
  const auto began = std::chrono::steady_clock::now();
  const auto answer = Do("GET", f + "?wait=ready&generation=1&timeout=20");
  EXPECT_LT(std::chrono::steady_clock::now() - began, 10s);
  EXPECT_EQ(Json(answer)["status"]["observedGeneration"], 1);
  EXPECT_EQ(Json(answer)["status"]["phase"], "Ready");
}

TEST_F(HandlersTest, AFailureFromBeforeTheRetryIsNotItsOutcome) {
  UploadCode();
  ASSERT_EQ(Do("PUT", f, FunctionBody().dump()).status, 201);
  SetStatus("Failed", 1);
  const auto wait = [&](int seconds) {
    const auto began = std::chrono::steady_clock::now();
    Do("GET", fmt::format("{}?wait=ready&generation=1&timeout={}", f, seconds));
    return std::chrono::steady_clock::now() - began;
  };
  EXPECT_LT(wait(20), 10s);
  ASSERT_EQ(Do("PATCH", f, R"({"metadata":{"annotations":{"sless.dev/retry":"1"}}})",
               "Content-Type: application/merge-patch+json\r\n")
                .status,
            200);
  EXPECT_GE(wait(1), 900ms);
}

TEST_F(HandlersTest, DeleteIsAskedForThenDone) {
  UploadCode();
  ASSERT_EQ(Do("PUT", f, FunctionBody().dump()).status, 201);
  const auto asked = Do("DELETE", f);
  EXPECT_EQ(asked.status, 202);
  EXPECT_NE(Json(asked)["metadata"]["deletionRequestedAt"], "");
  const auto put = Do("PUT", f, FunctionBody().dump());
  EXPECT_EQ(put.status, 409);
  EXPECT_THAT(put.body, HasSubstr("being deleted"));
  EXPECT_EQ(Do("DELETE", f + "?wait=gone&timeout=0").status, 202);
  std::jthread later([&] {
    std::this_thread::sleep_for(50ms);
    EXPECT_THAT(store->Delete({"Function", "default", "f"}, std::nullopt), IsOk());
  });
  EXPECT_EQ(Do("GET", f + "?wait=gone&timeout=20").status, 404);
  EXPECT_EQ(Do("DELETE", f).status, 404);
  ASSERT_EQ(Do("PUT", f, FunctionBody().dump()).status, 201);
  std::jthread end([&] {
    std::this_thread::sleep_for(50ms);
    EXPECT_THAT(store->Delete({"Function", "default", "f"}, std::nullopt), IsOk());
  });
  EXPECT_EQ(Do("DELETE", f + "?wait=gone&timeout=20").status, 204);
}

TEST_F(HandlersTest, ListsArePagedAndNamespacesComeAndGo) {
  EXPECT_EQ(Json(Do("GET", "/v1/namespaces"))["items"], json::array());
  UploadCode();
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_EQ(
        Do("PUT", std::string("/v1/namespaces/default/functions/") + name, FunctionBody().dump())
            .status,
        201);
  }
  const auto first = Json(Do("GET", "/v1/namespaces/default/functions?limit=2"));
  ASSERT_EQ(first["items"].size(), 2u);
  EXPECT_EQ(first["items"][0]["kind"], "Function");
  const auto next = Json(Do("GET", "/v1/namespaces/default/functions?limit=2&continue=" +
                                       base::PercentEncode(first["continue"].get<std::string>())));
  ASSERT_EQ(next["items"].size(), 1u);
  EXPECT_EQ(next["items"][0]["metadata"]["name"], "c");
  EXPECT_FALSE(next.contains("continue"));
  EXPECT_EQ(Do("GET", "/v1/namespaces/default/functions?limit=1001").status, 400);
  ASSERT_THAT(store->Create({{"Job", "another", "j"}, {}, "{}", "{}"}), IsOk());
  ASSERT_THAT(store->Create({{"Job", "default", "j"}, {}, "{}", "{}"}), IsOk());
  ASSERT_THAT(store->Create({{"Run", "hidden", "j.1"}, {}, "{}", "{}"}), IsOk());
  const auto all = Json(Do("GET", "/v1/namespaces"));
  EXPECT_EQ(all["items"], json::parse(R"([{"name":"another"},{"name":"default"}])"));
  EXPECT_FALSE(all.contains("continue"));
  const auto one = Json(Do("GET", "/v1/namespaces?limit=1"));
  EXPECT_EQ(one["items"], json::parse(R"([{"name":"another"}])"));
  const auto other = Json(Do("GET", "/v1/namespaces?limit=1&continue=" +
                                        base::PercentEncode(one["continue"].get<std::string>())));
  EXPECT_EQ(other["items"], json::parse(R"([{"name":"default"}])"));
  EXPECT_FALSE(other.contains("continue"));
  EXPECT_EQ(Do("GET", "/v1/namespaces?continue=a%2Fb").status, 400);
}

TEST_F(HandlersTest, RunsComeInPages) {
  for (int64_t id = 1; id <= 10; ++id) {
    api::Run run;
    run.metadata.ns = "default";
    run.metadata.name = fmt::format("j.{}", id);
    run.spec = {"Job", "j", "f", "{}", id, 1};
    ASSERT_THAT(store::CreateTyped(*store, run), IsOk());
  }
  const std::string path = "/v1/namespaces/default/jobs/j/runs";
  std::string found, next;
  for (int pages = 0; pages == 0 || (!next.empty() && pages < 20); ++pages) {
    const auto body =
        Json(Do("GET", path + "?limit=4" + (next.empty() ? "" : "&continue=" + next)));
    for (const auto& item : body["items"])
      found += item["metadata"]["name"].get<std::string>() + " ";
    next = body.value("continue", "");
    if (!next.empty()) found += "| ";
  }
  EXPECT_EQ(found, "j.10 j.9 j.8 j.7 | j.6 j.5 j.4 j.3 | j.2 j.1 ");
  EXPECT_EQ(Do("GET", path + "?continue=x").status, 400);
}

TEST_F(HandlersTest, RunsAreListedNewestFirstAndRetriedOnce) {
  const std::string job = "/v1/namespaces/default/jobs/j";
  ASSERT_EQ(Do("PUT", job, Body({{"function", "f"}, {"runId", 10}}).dump()).status, 201);
  for (const int64_t id : {2, 10}) {
    api::Run run;
    run.metadata.ns = "default";
    run.metadata.name = fmt::format("j.{}", id);
    run.spec = {"Job", "j", "f", "{}", id, 1};
    run.status.phase = id == 10 ? "Failed" : "Succeeded";
    run.status.attempt = 1;
    ASSERT_THAT(store::CreateTyped(*store, run), IsOk());
  }
  const auto list = Json(Do("GET", job + "/runs"));
  ASSERT_EQ(list["items"].size(), 2u);
  EXPECT_EQ(list["items"][0]["spec"]["runId"], 10);
  const auto retry = [&](int run, int attempt) {
    return Do("POST", job + "/runs", fmt::format(R"({{"runId":{},"attempt":{}}})", run, attempt));
  };
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Json(retry(10, 2))["spec"]["maxAttempts"], 2);
  EXPECT_EQ(retry(10, 1).status, 200);
  EXPECT_EQ(retry(10, 3).status, 422);
  EXPECT_EQ(retry(2, 2).status, 422) << "it succeeded";
  EXPECT_EQ(retry(3, 1).status, 404);
  EXPECT_EQ(retry(0, 1).status, 400);
  EXPECT_EQ(Do("POST", job + "/runs", "{}", "Content-Encoding: gzip\r\n").status, 415);
  // Only the run of the job as it is: an older one, or any at runId 0, runs no more.
  ASSERT_EQ(Do("PUT", job, Body({{"function", "f"}, {"runId", 0}}).dump()).status, 200);
  EXPECT_EQ(retry(10, 2).status, 200) << "allowed before";
  ASSERT_THAT(store::Mutate<api::Run>(*store, "default", "j.10",
                                      [](api::Run& r) {
                                        r.status.attempt = 2;
                                        return base::Ok();
                                      }),
              IsOk());
  const auto refused = retry(10, 3);
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(Json(refused)["field"], "/runId");
  EXPECT_EQ(Do("GET", "/v1/namespaces/default/jobs/k/runs").status, 404);
}

TEST_F(HandlersTest, RunsOfACronTriggerAreListedLikeThoseOfAJob) {
  const std::string base = "/v1/namespaces/default/";
  const json cron = {{"schedule", "* * * * *"}};
  ASSERT_EQ(Do("PUT", base + "triggers/t",
               Body({{"function", "f"}, {"type", "cron"}, {"cron", cron}}).dump())
                .status,
            201);
  EXPECT_EQ(Json(Do("GET", base + "triggers/t/runs"))["items"], json::array());
  for (const int64_t planned : {60, 120, 180}) {
    api::Run run;
    run.metadata.ns = "default";
    run.metadata.name = fmt::format("t.{}.cron", planned);
    run.spec = {"Trigger", "t", "f", "{}", planned, 1};
    run.status.phase = "Failed";
    run.status.failure = api::Failure{"HandlerError", "no such table", "h.py", 3, {}};
    ASSERT_THAT(store::CreateTyped(*store, run), IsOk());
  }
  const auto list = Json(Do("GET", base + "triggers/t/runs?limit=2"));
  ASSERT_EQ(list["items"].size(), 2u);
  EXPECT_EQ(list["items"][0]["spec"]["runId"], 180);
  EXPECT_EQ(list["items"][0]["kind"], "Run");
  EXPECT_EQ(list["items"][0]["status"]["failure"]["message"], "no such table");
  EXPECT_EQ(Do("GET", base + "triggers/other/runs").status, 404);
  EXPECT_EQ(Do("GET", base + "jobs/t/runs").status, 404) << "a job of that name is another thing";
  EXPECT_EQ(Do("POST", base + "triggers/t/runs", "{}").status, 405);
}

TEST_F(HandlersTest, LoweredRunIdNamesTheLastRun) {
  const std::string job = "/v1/namespaces/default/jobs/j";
  const auto put = [&](int id) {
    return Do("PUT", job, Body({{"function", "f"}, {"runId", id}}).dump());
  };
  ASSERT_EQ(put(5).status, 201);
  EXPECT_THAT((store::MutateStatus<api::Job>(*store, "default", "j",
                                             [](api::Job& j) {
                                               j.status.last_run_id = 5;
                                               return base::Ok();
                                             })),
              IsOk());
  const auto lowered = put(4);
  EXPECT_EQ(lowered.status, 422);
  EXPECT_EQ(Json(lowered)["field"], "/spec/runId");
  EXPECT_THAT(lowered.body, HasSubstr("5"));
  EXPECT_EQ(put(0).status, 200);
}

TEST_F(HandlersTest, Logs) {
  const auto path = f + "/logs?limit=5&stream=stderr&requestId=r&revision=2";
  EXPECT_EQ(Do("GET", path).status, 404) << "no such function, no lines";
  logs.records.push_back({clock.Now(), 2, "r1", "stderr", "r", "hello"});
  EXPECT_EQ(Json(Do("GET", path))["items"][0]["line"], "hello");
  EXPECT_EQ(logs.last.limit, 5u);
  EXPECT_EQ(logs.last.revision, 2);
  EXPECT_EQ(logs.last.request_id, "r");
  EXPECT_EQ(Do("GET", f + "/logs?stream=nonsense").status, 400);
}

std::string Upper(std::string text) {
  for (auto& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// What a documented route does: a success, asked for with everything that it takes.
class DocumentTest : public HandlersTest {
 protected:
  DocumentTest() {
    UploadCode();
    const std::string base = "/v1/namespaces/default/";
    const auto put = [&](const std::string& path) {
      EXPECT_EQ(Do("PUT", path, bodies.at(path.substr(base.size()))).status, 201) << path;
    };
    bodies["functions/f"] = FunctionBody().dump();
    bodies["jobs/f"] = Body({{"function", "f"}, {"runId", 1}}).dump();
    bodies["triggers/f"] =
        Body({{"function", "f"}, {"type", "http"}, {"http", json::object()}}).dump();
    for (const char* path : {"functions/f", "jobs/f", "triggers/f"}) put(base + path);
    bodies["jobs/f/runs"] = R"({"runId":1,"attempt":2})";
    bodies["functions/f/invoke"] = "{}";
    bodies["code/" + hash] = "any";
    api::Run run;
    run.metadata.ns = "default";
    run.metadata.name = "f.1";
    run.spec = {"Job", "f", "f", "{}", 1, 1};
    run.status.phase = "Failed";
    run.status.attempt = 1;
    EXPECT_THAT(store::CreateTyped(*store, run), IsOk());
    logs.records.push_back({clock.Now(), 2, "r1", "stderr", "r", "hello"});
    route.ns = "default";
    route.name = "f";
    route.revision = runtime::RevisionKey{"default", "f", 1};
    route.spec.timeout_sec = 5;
    gateway->Publish(route);
  }

  std::string Real(std::string path) const {
    for (const auto& [name, value] : std::map<std::string, std::string>{
             {"{namespace}", "default"}, {"{name}", "f"}, {"{hash}", hash}}) {
      if (const auto at = path.find(name); at != std::string::npos)
        path.replace(at, name.size(), value);
    }
    EXPECT_EQ(path.find('{'), std::string::npos) << path;
    return path;
  }
  std::string BodyFor(const std::string& method, const std::string& path) const {
    if (method == "PATCH") return "{}";
    if (method != "PUT" && method != "POST") return "";
    return bodies.at(path.substr(std::string("/v1/namespaces/default/").size()));
  }
  // Every operation, those that remove something last.
  void ForEach(const std::function<void(const std::string& method, const std::string& path,
                                        const json& operation)>& f) {
    Do("GET", "/v1/info");
    for (const bool last : {false, true}) {
      for (const auto& [path, operations] : document->root()["paths"].items()) {
        for (const auto& [method, operation] : operations.items()) {
          if ((method == "delete") == last) f(Upper(method), Real(path), operation);
        }
      }
    }
  }

  std::map<std::string, std::string> bodies;  // by path
  gateway::FunctionRoute route;
};

TEST_F(DocumentTest, EveryOperationSucceedsWithATokenOnly) {
  int checked = 0;
  ForEach([&](const auto& method, const auto& path, const json& operation) {
    const auto where = method + " " + path;
    const auto body = BodyFor(method, path);
    ++checked;
    if (!operation["security"].empty()) {
      EXPECT_EQ(Call(method, path, body).status, 401) << where;
    }
    if (!operation.contains("requestBody")) {
      EXPECT_LT(Do(method, path).status, 300) << where;
      return;
    }
    for (const auto& [type, unused] : operation["requestBody"]["content"].items()) {
      EXPECT_LT(Do(method, path, body, "Content-Type: " + type + "\r\n").status, 300) << where;
    }
    EXPECT_EQ(Do(method, path, body, "Content-Encoding: gzip\r\n").status, 415) << where;
    if (operation["requestBody"]["content"].contains("application/merge-patch+json")) {
      for (const char* type : {"", "Content-Type: text/plain\r\n"})
        EXPECT_EQ(Do(method, path, body, type).status, 415) << where;
    }
  });
  EXPECT_EQ(checked, 43);
}

TEST_F(DocumentTest, ParametersAreTakenWithinTheirBoundsOnly) {
  int checked = 0;
  ForEach([&](const auto& method, const auto& path, const json& operation) {
    // No wait takes time.
    const bool waits = operation["parameters"].dump().find("\"timeout\"") != std::string::npos;
    const auto ask = [&](const std::string& name, const std::string& value, bool good) {
      ++checked;
      auto target = path + "?" + name + "=" + value;
      if (waits && name != "timeout") target += "&timeout=0";
      const int status = Do(method, target).status;
      EXPECT_TRUE(good ? status < 300 : status == 400) << method << " " << target << status;
    };
    for (const auto& given : operation["parameters"]) {
      const auto& parameter = document->Resolve(given);
      if (parameter["in"] != "query") continue;
      const auto& schema = parameter["schema"];
      const auto name = parameter["name"].template get<std::string>();
      for (const auto& word : schema.value("enum", json::array()))
        ask(name, word.template get<std::string>(), true);
      if (schema.contains("enum")) ask(name, "nonsense", false);
      if (schema["type"] != "integer") continue;
      const auto least = schema["minimum"].template get<int64_t>();
      const auto most = schema["maximum"].template get<int64_t>();
      for (const auto number : {least, most}) ask(name, std::to_string(number), true);
      ask(name, std::to_string(least - 1), false);
      ask(name, std::to_string(static_cast<uint64_t>(most) + 1), false);
      ask(name, "x", false);
    }
  });
  EXPECT_GE(checked, 150);
}

TEST_F(DocumentTest, ConditionsCountWhereTheyAreDocumented) {
  int checked = 0;
  ForEach([&](const auto& method, const auto& path, const json& operation) {
    const bool counts = operation["parameters"].dump().find("If-Match") != std::string::npos;
    if (!counts || method == "DELETE") return;
    ++checked;
    const auto body = BodyFor(method, path);
    const std::string type = "Content-Type: application/json\r\n";
    EXPECT_EQ(Do(method, path, body, type + "If-Match: \"none\"\r\n").status, 412) << path;
    EXPECT_EQ(Do(method, path, body, type + "If-Match: none\r\n").status, 400) << path;
    EXPECT_EQ(Do(method, path, body, type + "If-Match:\r\n").status, 400) << path;
    EXPECT_EQ(Do(method, path, body, type + "If-None-Match:\r\n").status, 400) << path;
    EXPECT_EQ(Do(method, path, body, type + "If-None-Match: *\r\n").status, 409) << path;
    EXPECT_EQ(Do(method, path, body, type + "If-None-Match: x\r\n").status, 400) << path;
    EXPECT_EQ(Do(method, path, body, type + "If-Match: *\r\n").status, 200) << path;
  });
  EXPECT_EQ(checked, 6);
  EXPECT_EQ(Do("DELETE", f, "", "If-Match: \"none\"\r\n").status, 412);
  EXPECT_EQ(Do("DELETE", f, "", "If-None-Match: *\r\n").status, 409);
  EXPECT_EQ(Do("DELETE", f, "", "If-Match: *\r\n").status, 202);
}

TEST_F(DocumentTest, EveryRouteIsDocumented) {
  Do("GET", "/v1/info");
  for (const auto& [method, pattern] : served) {
    if (pattern.starts_with("/fn/")) continue;  // as the functions say
    EXPECT_TRUE(document->root()["paths"][pattern].contains(base::Lower(method)))
        << method << " " << pattern;
  }
}

TEST_F(DocumentTest, OtherMethodsAndPathsAreRefused) {
  Do("GET", "/v1/info");
  for (const auto& [path, operations] : document->root()["paths"].items()) {
    for (const char* method : {"GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS"}) {
      if (operations.contains(base::Lower(method))) continue;
      EXPECT_EQ(Do(method, Real(path)).status, 405) << method << path;
    }
  }
  for (const char* path : {"/", "/v1", "/v1/none", "/v1/namespaces/default", "/healthz/x"})
    EXPECT_EQ(Do("GET", path).status, 404) << path;
}

TEST_F(DocumentTest, AnInvokeAnswersAsDocumented) {
  EXPECT_EQ(Do("POST", f + "/invoke").status, 200) << "no body is {}";
  EXPECT_EQ(Do("POST", f + "/invoke", "\"raise\"").status, 422);
  EXPECT_EQ(Do("POST", f + "/invoke", "no JSON").status, 400);
  EXPECT_EQ(Do("POST", f + "x/invoke", "{}").status, 404);
  EXPECT_EQ(Do("POST", f + "/invoke", "\"" + std::string(6 << 20, 'x') + "\"").status, 413);
  EXPECT_EQ(Do("POST", f + "/invoke", "\"die\"").status, 502);
  route.spec.timeout_sec = 1;
  gateway->Publish(route);
  EXPECT_EQ(Do("POST", f + "/invoke", "\"slow to end\"").status, 504);
  route.revision.reset();
  gateway->Publish(route);
  EXPECT_EQ(Do("POST", f + "/invoke").status, 503);
}

// What holds the answers against the document must see what is wrong.
TEST_F(DocumentTest, AWrongBodyIsSeen) {
  const auto good = Json(Do("GET", f));
  const json schema{{"$ref", "#/components/schemas/Function"}};
  const auto problem = [&](const std::string& pointer, const json& value) {
    auto body = good;
    const json::json_pointer at(pointer);
    if (value.is_null()) {
      body[at.parent_pointer()].erase(at.back());
    } else {
      body[at] = value;
    }
    return document->SchemaProblem(schema, body);
  };
  EXPECT_EQ(document->SchemaProblem(schema, good), "");
  EXPECT_THAT(problem("/spec/memoryMb", nullptr), HasSubstr("missing"));
  EXPECT_THAT(problem("/kind", nullptr), HasSubstr("missing"));
  EXPECT_THAT(problem("/spec/memoryMb", 1), HasSubstr("bounds"));
  EXPECT_THAT(problem("/spec/memoryMb", "256"), HasSubstr("want"));
  EXPECT_THAT(problem("/spec/other", 1), HasSubstr("not documented"));
  EXPECT_THAT(problem("/spec/environment", {{"A", 1}}), HasSubstr("want"));
  EXPECT_THAT(problem("/spec/source/hash", "sha256:0"), HasSubstr("match"));
  EXPECT_THAT(problem("/status/phase", ""), HasSubstr("none of"));
  EXPECT_THAT(problem("/spec/codeHash", std::string(1025, 'x')), HasSubstr("too long"));
  EXPECT_NE(document->SchemaProblem({{"oneOf", json::array()}}, good), "") << "a new keyword";
  const auto answer = http::Call(server->address(), "GET", f, "", bearer);
  EXPECT_EQ(document->Problem({"GET", f, "", ""}, answer), "");
  EXPECT_THAT(document->Problem({"GET", f + "?nonsense=1", "", ""}, answer), HasSubstr("nonsense"));
  EXPECT_THAT(document->Problem({"GET", f, "", "If-Match: *\r\n"}, answer), HasSubstr("If-Match"));
  EXPECT_NE(document->Problem({"PUT", f, "{}", ""}, answer), "");
  auto other = answer;
  other.status = 418;
  EXPECT_THAT(document->Problem({"GET", f, "", ""}, other), HasSubstr("status"));
}

}  // namespace
}  // namespace sless::handlers
