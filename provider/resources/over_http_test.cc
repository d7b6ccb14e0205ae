// The function resource over the real client and real sockets.

#include <gtest/gtest.h>

#include <fstream>

#include "client/base/strings.h"
#include "client/transport/testing/http_imposter.h"
#include "provider/cty/wire_json.h"
#include "provider/resources/testing/world.h"

namespace sless::resources {
namespace {

using transport::ImposterAnswer;
using transport::RecordedRequest;

constexpr const char* kObject = "/v1/namespaces/default/functions/f";

// A server that knows one function: keeps what is PUT, and says that it serves.
class TinyServer {
 public:
  TinyServer() {
    imposter.Handle([this](const RecordedRequest& request) { return Answer(request); });
  }
  // The next request of this method is read and gets no answer, after it has done its work.
  void LoseNextAnswer(const std::string& method) { lose_ = method; }

  transport::HttpImposter imposter;

 private:
  ImposterAnswer Answer(const RecordedRequest& request) {
    auto answer = Work(request);
    if (request.method == lose_) {
      lose_.clear();
      answer.end = ImposterAnswer::End::kNoAnswer;
    }
    return answer;
  }
  ImposterAnswer Work(const RecordedRequest& request) {
    const auto path = request.target.substr(0, request.target.find('?'));
    if (request.headers.Get("Authorization") != "Bearer good-token")
      return {401, R"({"code":"Unauthenticated","message":"no such token"})"};
    if (path == "/v1/info")
      return {200, R"({"version":"1","externalUrl":"http://x","runtimes":[]})"};
    if (path.find("/code/") != path.npos)
      return {request.method == "HEAD" ? 404 : 201, request.method == "HEAD" ? "" : "{}"};
    if (path != kObject) return {404, R"({"code":"NotFound","message":"no such path"})"};
    if (request.method == "PUT") {
      const bool there = !body_.empty();
      if (there && request.headers.Has("If-None-Match"))
        return {409, R"({"code":"AlreadyExists","message":"it is there"})"};
      // The request's own metadata and spec, with what a server adds.
      body_ = request.body;
      return {201, Object()};
    }
    if (body_.empty()) return {404, R"({"code":"NotFound","message":"not there"})"};
    if (request.method == "DELETE") {
      body_.clear();
      return {202, "{}"};
    }
    return {200, Object()};
  }
  std::string Object() const {
    const auto value = cty::DecodeAnyJson(body_);
    const auto spec = value->Get("spec");
    const auto all =
        value
            ->With("metadata", value->Get("metadata")
                                   .With("generation", cty::Value::Int(1))
                                   .With("resourceVersion", cty::Value::String("7")))
            .With("status",
                  cty::Value::Object({{"phase", cty::Value::String("Ready")},
                                      {"observedGeneration", cty::Value::Int(1)},
                                      {"revision", cty::Value::Int(1)},
                                      {"lastBuiltAt", cty::Value::String("2026-01-01T00:00:00Z")},
                                      {"invokeUrl", cty::Value::String("http://x/invoke")},
                                      {"serving", spec}}));
    return *cty::EncodeJson(all, cty::InferType(all));
  }

  std::string lose_;
  std::string body_;
};

class OverHttp : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "sless-http-XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
    std::ofstream(dir_ / "handler.py") << "def handle(event):\n    return 1\n";
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }

  void Connect(const std::string& endpoint, const std::string& token = "good-token",
               int retries = 2) {
    rest::ClientOptions options;
    options.endpoint = endpoint;
    options.token = base::Secret(token);
    options.max_retries = retries;
    options.first_backoff = std::chrono::milliseconds(5);
    backend_ = MakeRestBackend(std::move(*rest::SlessClient::Make(options)));
    engine_ = std::make_unique<framework::engine::Engine>(MakeTestProvider(backend_.get()), clock_);
    engine_->Configure({{}, log_}, "1.11.4", cty::Value::Object({}), {});
    driver_.emplace(*engine_, "sless_function", log_);
  }
  cty::Value Config() const {
    using cty::Value;
    return driver_->Config({{"name", Value::String("f")},
                            {"runtime", Value::String("python3.11")},
                            {"source_dir", Value::String(dir_.string())}});
  }

  base::SystemClock clock_;
  base::NullLogger log_;
  std::filesystem::path dir_;
  TinyServer server_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<framework::engine::Engine> engine_;
  std::optional<framework::testing::CoreDriver> driver_;
};

TEST_F(OverHttp, CodeGoesFirstThenTheObject) {
  Connect(server_.imposter.Url());
  const auto applied = driver_->Apply(Config());
  ASSERT_TRUE(applied.Ok()) << applied.Problems();
  std::vector<std::string> seen;
  std::string zip;
  std::string object;
  for (const auto& request : server_.imposter.Requests()) {
    const bool code = base::Contains(request.target, "/code/sha256:") ||
                      base::Contains(request.target, "/code/sha256%3A");
    seen.push_back(request.method + (code                           ? " code"
                                     : request.target == "/v1/info" ? " info"
                                                                    : " object"));
    if (request.method == "PUT") (code ? zip : object) = request.body;
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"GET info", "HEAD code", "PUT code", "PUT object",
                                            "GET object", "PATCH object"}));
  EXPECT_TRUE(zip.starts_with("PK")) << "a zip";
  EXPECT_NE(object.find("sless.dev/creating"), std::string::npos);
  EXPECT_NE(object.find(driver_->state().Get("source_hash").AsString()), std::string::npos);
  EXPECT_TRUE(driver_->Destroy().Ok());
}

TEST_F(OverHttp, ALostAnswerIsAskedForAgain) {
  for (const char* method : {"HEAD", "PUT", "PATCH", "GET"}) {
    SCOPED_TRACE(method);
    TinyServer fresh;
    Connect(fresh.imposter.Url());
    fresh.LoseNextAnswer(method);
    const auto applied = driver_->Apply(Config());
    EXPECT_TRUE(applied.Ok()) << applied.Problems();
    EXPECT_EQ(driver_->Plan(Config()).action, framework::testing::PlannedAction::kNoOp);
  }
}

TEST_F(OverHttp, AWrongTokenIsNotShown) {
  Connect(server_.imposter.Url(), "hush-hush");
  const auto plan = driver_->Plan(Config());
  EXPECT_TRUE(HasError(plan.diagnostics, "name", "SLESS_TOKEN")) << plan.Problems();
  EXPECT_TRUE(HasError(plan.diagnostics, "name", server_.imposter.Url())) << plan.Problems();
  EXPECT_EQ(plan.Problems().find("hush-hush"), std::string::npos);
}

TEST_F(OverHttp, AServerThatIsNotThereIsToldSoon) {
  Connect("http://127.0.0.1:1", "good-token", 4);
  const auto begun = clock_.Steady();
  const auto plan = driver_->Plan(Config());
  EXPECT_LT(clock_.Steady() - begun, std::chrono::seconds(10));
  EXPECT_TRUE(HasError(plan.diagnostics, "name", "SLESS_ENDPOINT")) << plan.Problems();
  EXPECT_TRUE(HasError(plan.diagnostics, "name", "127.0.0.1:1")) << plan.Problems();
  EXPECT_TRUE(HasError(plan.diagnostics, "name", "refused")) << plan.Problems();
}

}  // namespace
}  // namespace sless::resources
