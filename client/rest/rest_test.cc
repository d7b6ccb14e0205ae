#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "client/api/error_body.h"
#include "client/api/fields.h"
#include "client/base/testing/result_matchers.h"
#include "client/rest/sless_client.h"
#include "client/transport/testing/http_imposter.h"

namespace sless::rest {
namespace {

using api::Function;
using api::Job;
using api::Trigger;
using base::Code;
using base::IsError;
using base::IsOk;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using transport::ImposterAnswer;
using transport::RecordedRequest;
using End = ImposterAnswer::End;
using std::chrono::milliseconds;

const base::SystemClock kClock;
const std::string kPath = "/v1/namespaces/default/functions/f";
const std::string kHash = "sha256:" + std::string(64, 'a');

ImposterAnswer Answer(int status, std::string body, End end = End::kKeepAlive) {
  ImposterAnswer answer;
  answer.status = status;
  answer.body = std::move(body);
  answer.end = end;
  return answer;
}
ImposterAnswer Refusal(Code code, std::string message, std::string field = "") {
  base::Error error{code, std::move(message), std::move(field), "", {}};
  return Answer(api::HttpStatus(code), api::ErrorBody(error));
}
template <class T>
ImposterAnswer Holding(const T& object, int status = 200) {
  return Answer(status, api::ToJsonText(object));
}

Function MakeFunction(int64_t memory = 256) {
  Function function;
  function.metadata.ns = "default";
  function.metadata.name = "f";
  function.metadata.uid = "u1";
  function.metadata.resource_version = "7";
  function.spec.runtime = "python3.11";
  function.spec.memory_mb = memory;
  return function;
}

class Client : public testing::Test {
 protected:
  Client() {
    Remake([](ClientOptions&) {});
  }
  void Remake(const std::function<void(ClientOptions&)>& change) {
    ClientOptions options;
    options.endpoint = server_.Url() + "/";
    options.token = base::Secret("s3cret");
    options.request_timeout = milliseconds(5000);
    options.max_retries = 3;
    options.first_backoff = milliseconds(1);
    change(options);
    auto made = SlessClient::Make(std::move(options));
    ASSERT_THAT(made, IsOk());
    client_ = std::move(*made);
  }
  static Call Within(int ms) { return {base::Deadline::After(kClock, milliseconds(ms)), {}}; }

  transport::HttpImposter server_;
  std::unique_ptr<SlessClient> client_;
};

TEST_F(Client, GetSendsTheTokenAndReadsTheObject) {
  auto function = MakeFunction();
  function.status.phase = "Ready";
  server_.On("GET", kPath, {Holding(function)});
  const auto got = client_->Get<Function>({"default", "f"});
  ASSERT_THAT(got, IsOk());
  EXPECT_EQ(got->spec, function.spec);
  EXPECT_EQ(got->status.phase, "Ready");
  EXPECT_EQ(server_.Requests()[0].headers.Get("authorization"), "Bearer s3cret");
}

TEST_F(Client, NamesArePathSegmentsWhateverTheyHold) {
  EXPECT_THAT(client_->Get<Function>({"../x", "a/b?c"}), IsError(Code::kNotFound, HasSubstr("")));
  EXPECT_EQ(server_.Requests()[0].target, "/v1/namespaces/..%2Fx/functions/a%2Fb%3Fc");
}

TEST_F(Client, ErrorsKeepTheirFieldsAndNameTheRequest) {
  base::Error error{Code::kInvalidArgument,
                    "memory is small",
                    "/spec/memoryMb",
                    "TooSmall",
                    {"h.py", 3, {"line"}}};
  server_.On("PUT", kPath, {Answer(400, api::ErrorBody(error))});
  const auto put = client_->Put(MakeFunction(), PutMode::kAny);
  ASSERT_THAT(
      put, IsError(Code::kInvalidArgument,
                   AllOf(HasSubstr("memory is small"), HasSubstr("PUT " + server_.Url() + kPath))));
  EXPECT_EQ(put.error().field, "/spec/memoryMb");
  EXPECT_EQ(put.error().reason, "TooSmall");
  EXPECT_EQ(put.error().source.line, 3);
  EXPECT_EQ(server_.Count("PUT", kPath), 1);
}

TEST_F(Client, WrongTokenSaysWhereToLook) {
  server_.On("GET", "/v1/info", {Refusal(Code::kUnauthenticated, "no such token")});
  EXPECT_THAT(client_->Info(), IsError(Code::kUnauthenticated,
                                       AllOf(HasSubstr("SLESS_TOKEN"), HasSubstr(server_.Url()),
                                             Not(HasSubstr("s3cret")))));
  EXPECT_EQ(server_.Count("GET", "/v1/info"), 1);
}

TEST_F(Client, UnreachableSaysWhereToLook) {
  Remake([](ClientOptions& options) {
    options.endpoint = "http://127.0.0.1:1";
    options.max_retries = 1;
  });
  EXPECT_THAT(client_->Info(),
              IsError(Code::kUnavailable,
                      AllOf(HasSubstr("connection refused"), HasSubstr("SLESS_ENDPOINT"),
                            HasSubstr("http://127.0.0.1:1"), HasSubstr("after 2 attempts"))));
}

TEST_F(Client, BadOptions) {
  EXPECT_THAT(SlessClient::Make({.endpoint = "localhost:8080"}),
              IsError(Code::kInvalidArgument, HasSubstr("want a URL")));
  EXPECT_THAT(SlessClient::Make({.endpoint = "http://h/?a"}),
              IsError(Code::kInvalidArgument, HasSubstr("without a query")));
  EXPECT_THAT(
      SlessClient::Make({.endpoint = "http://h", .token = base::Secret("abc\n")}),
      IsError(Code::kInvalidArgument, AllOf(HasSubstr("line break"), Not(HasSubstr("abc")))));
}

TEST_F(Client, RetriesWhatMayPass) {
  for (const auto& first :
       {Answer(503, ""), Answer(502, "<html>"), Answer(429, ""), Answer(200, "", End::kNoAnswer),
        Answer(200, "xxxx", End::kHalfAnswer)}) {
    server_.On(
        "GET", "/v1/info",
        {first,
         Answer(200, R"({"version":"1","externalUrl":"http://e","runtimes":["python3.11"]})")});
    const int before = server_.Count("GET", "/v1/info");
    const auto info = client_->Info();
    ASSERT_THAT(info, IsOk());
    EXPECT_EQ(info->external_url, "http://e");
    EXPECT_EQ(info->runtimes, std::vector<std::string>{"python3.11"});
    EXPECT_GE(server_.Count("GET", "/v1/info") - before, 2);
  }
}

TEST_F(Client, RetriesEnd) {
  server_.On("GET", kPath, {Refusal(Code::kUnavailable, "shutting down")});
  EXPECT_THAT(client_->Get<Function>({"default", "f"}),
              IsError(Code::kUnavailable,
                      AllOf(HasSubstr("shutting down"), HasSubstr("after 4 attempts"))));
  EXPECT_EQ(server_.Count("GET", kPath), 4);
  server_.On("GET", kPath, {Refusal(Code::kInternal, "bug")});
  EXPECT_THAT(client_->Get<Function>({"default", "f"}), IsError(Code::kInternal, HasSubstr("bug")));
  EXPECT_EQ(server_.Count("GET", kPath), 5);
}

TEST_F(Client, RetryAfterIsHonouredWithinTheDeadline) {
  auto busy = Answer(503, "");
  busy.headers.Add("Retry-After", "5");
  server_.On("GET", kPath, {busy});
  const auto before = kClock.Steady();
  EXPECT_THAT(client_->Get<Function>({"default", "f"}, Within(1000)),
              IsError(Code::kUnavailable, HasSubstr("503")));
  EXPECT_LT(kClock.Steady() - before, milliseconds(900));
  EXPECT_EQ(server_.Count("GET", kPath), 1);
}

TEST_F(Client, PutModes) {
  server_.On("PUT", kPath, {Holding(MakeFunction(), 201)});
  ASSERT_THAT(client_->Put(MakeFunction(), PutMode::kCreateOnly), IsOk());
  ASSERT_THAT(client_->Put(MakeFunction(), PutMode::kReplace), IsOk());
  ASSERT_THAT(client_->Put(MakeFunction(), PutMode::kAny), IsOk());
  const auto requests = server_.Requests();
  EXPECT_EQ(requests[0].headers.Get("If-None-Match"), "*");
  EXPECT_EQ(requests[1].headers.Get("If-Match"), "\"7\"");
  EXPECT_FALSE(requests[2].headers.Has("If-Match") || requests[2].headers.Has("If-None-Match"));
  const auto body = nlohmann::json::parse(requests[0].body);
  // Annotations that are left out would stay.
  EXPECT_EQ(body["metadata"],
            nlohmann::json::parse(R"({"namespace": "default", "name": "f", "annotations": {}})"));
  EXPECT_FALSE(body.contains("status"));
}

TEST_F(Client, LostAnswerOfACreateIsSuccess) {
  server_.On("PUT", kPath,
             {Answer(200, "", End::kNoAnswer), Refusal(Code::kAlreadyExists, "exists")});
  server_.On("GET", kPath, {Holding(MakeFunction())});
  ASSERT_THAT(client_->Put(MakeFunction(), PutMode::kCreateOnly), IsOk());
  EXPECT_EQ(server_.Count("PUT", kPath), 2);
  // Another spec is somebody else's.
  server_.On("PUT", kPath,
             {Answer(200, "", End::kNoAnswer), Refusal(Code::kAlreadyExists, "exists")});
  EXPECT_THAT(client_->Put(MakeFunction(512), PutMode::kCreateOnly),
              IsError(Code::kAlreadyExists, HasSubstr("exists")));
}

TEST_F(Client, ConflictWithoutALostAnswerIsAConflict) {
  server_.On("PUT", kPath, {Refusal(Code::kAlreadyExists, "exists")});
  server_.On("GET", kPath, {Holding(MakeFunction())});
  EXPECT_THAT(client_->Put(MakeFunction(), PutMode::kCreateOnly),
              IsError(Code::kAlreadyExists, HasSubstr("exists")));
  EXPECT_EQ(server_.Count("GET", kPath), 0);
}

TEST_F(Client, LostAnswerOfAReplaceAndADelete) {
  server_.On("PUT", kPath, {Answer(200, "", End::kNoAnswer), Refusal(Code::kAborted, "changed")});
  server_.On("GET", kPath, {Holding(MakeFunction())});
  EXPECT_THAT(client_->Put(MakeFunction(), PutMode::kReplace), IsOk());
  server_.On("DELETE", kPath, {Answer(200, "", End::kNoAnswer), Refusal(Code::kNotFound, "gone")});
  EXPECT_THAT(client_->Delete(MakeFunction()), IsOk());
  EXPECT_THAT(client_->Delete(MakeFunction()), IsError(Code::kNotFound, HasSubstr("gone")));
}

TEST_F(Client, CreateTakesOverWhatWasInterrupted) {
  auto interrupted = MakeFunction(512);
  interrupted.metadata.annotations[std::string(api::kCreatingAnnotation)] = "true";
  server_.On("PUT", kPath, {Refusal(Code::kAlreadyExists, "exists"), Holding(MakeFunction())});
  server_.On("GET", kPath, {Holding(interrupted)});
  ASSERT_THAT(client_->Create(MakeFunction()), IsOk());
  const auto requests = server_.Requests();
  ASSERT_EQ(requests.size(), 3u);
  EXPECT_EQ(
      nlohmann::json::parse(requests[0].body)["metadata"]["annotations"]["sless.dev/creating"],
      "true");
  EXPECT_EQ(requests[2].headers.Get("If-Match"), "\"7\"");
  const auto owner = [&](size_t i) {
    return nlohmann::json::parse(requests[i].body)["metadata"]["annotations"]["sless.dev/owner"];
  };
  EXPECT_TRUE(owner(0).is_string());
  EXPECT_EQ(owner(2), owner(0));
}

TEST_F(Client, CreateTakesOverTheSameSpecAndNothingElse) {
  server_.On("PUT", kPath,
             {Refusal(Code::kAlreadyExists, "exists"), Holding(MakeFunction()),
              Refusal(Code::kAlreadyExists, "exists")});
  server_.On("GET", kPath, {Holding(MakeFunction())});
  EXPECT_THAT(client_->Create(MakeFunction()), IsOk());
  EXPECT_THAT(client_->Create(MakeFunction(512)),
              IsError(Code::kAlreadyExists,
                      AllOf(HasSubstr("Function default/f"), HasSubstr("terraform import"))));
}

TEST_F(Client, CreateWaitsForADeletionToEnd) {
  auto deleted = MakeFunction();
  deleted.metadata.deletion_requested_at = "2026-01-01T00:00:00.000Z";
  server_.On("PUT", kPath,
             {Refusal(Code::kAlreadyExists, "is being deleted"), Holding(MakeFunction(), 201)});
  server_.On("GET", kPath, {Holding(deleted), Holding(deleted), Refusal(Code::kNotFound, "gone")});
  EXPECT_THAT(client_->Create(MakeFunction(), Within(10'000)), IsOk());
  EXPECT_EQ(server_.Count("PUT", kPath), 2);
}

TEST_F(Client, FinishCreateRemovesTheAnnotation) {
  server_.On("PATCH", kPath, {Holding(MakeFunction())});
  ASSERT_THAT(client_->FinishCreate<Function>({"default", "f"}), IsOk());
  const auto request = server_.Requests()[0];
  EXPECT_EQ(request.headers.Get("Content-Type"), "application/merge-patch+json");
  EXPECT_EQ(request.body, R"({"metadata":{"annotations":{"sless.dev/creating":null}}})");
}

TEST_F(Client, WaitReadyNeedsTheGenerationAndAFinalPhase) {
  auto function = MakeFunction();
  const auto state = [&](const char* phase, int64_t generation) {
    function.status.phase = phase;
    function.status.observed_generation = generation;
    return Holding(function);
  };
  server_.On("GET", kPath,
             {state("Ready", 1), state("Building", 2), Answer(503, ""), state("Failed", 2)});
  const auto ready = client_->WaitReady<Function>({"default", "f"}, 2, Within(10'000));
  ASSERT_THAT(ready, IsOk());
  EXPECT_EQ(ready->status.phase, "Failed");
  EXPECT_EQ(ready->status.observed_generation, 2);
  EXPECT_THAT(server_.Requests()[0].target, HasSubstr("?wait=ready&generation=2&timeout=9"));
}

TEST_F(Client, TheLastLinesAreThoseOfOneRevisionSinceATime) {
  const auto line = [](int second, const std::string& text) {
    return fmt::format(R"({{"time":"2026-01-01T00:00:{:02}.000Z","line":"{}"}},)", second, text);
  };
  const std::string items = line(5, "before") + line(10, "first") + R"({"line":"no time"},)" +
                            line(12, "last") + R"({"time":7,"line":""},7)";
  server_.On("GET", kPath + "/logs", {{.body = "{\"items\":[" + items + "]}"}, {.body = "[]"}});
  const std::string since = "2026-01-01T00:00:10.000Z";
  const Name name{"default", "f"};
  const auto lines = client_->LastLines(name, 3, since);
  ASSERT_THAT(lines, IsOk());
  EXPECT_THAT(*lines, testing::ElementsAre("first", "last"));
  EXPECT_THAT(server_.Requests()[0].target, testing::EndsWith("/logs?revision=3&limit=30"));
  EXPECT_THAT(client_->LastLines(name, 3, since), IsError(Code::kInternal, HasSubstr("items")));
}

TEST_F(Client, AFailureFromBeforeTheRetryIsNotItsOutcome) {
  auto function = MakeFunction();
  function.status.phase = "Failed";
  function.status.observed_generation = 1;
  server_.On("PATCH", kPath, {Holding(function)});
  ASSERT_THAT(client_->RetryFunction({"default", "f"}), IsOk());
  EXPECT_THAT(server_.Requests()[0].body,
              HasSubstr(R"({"metadata":{"annotations":{"sless.dev/retry":")"));
  function.metadata.annotations["sless.dev/retry"] = "x";
  const auto before = Holding(function);
  function.status.observed_retry = "x";
  function.status.phase = "Ready";
  server_.On("GET", kPath, {before, Holding(function)});
  const auto ready = client_->WaitReady<Function>({"default", "f"}, 1, Within(10'000));
  ASSERT_THAT(ready, IsOk());
  EXPECT_EQ(ready->status.phase, "Ready");
}

// An answer that comes after the deadline could not tell the phase.
TEST_F(Client, APollAfterAnOutageAsksForTheTimeThatIsLeft) {
  auto function = MakeFunction();
  function.status.phase = "Building";
  server_.On("GET", kPath, {Answer(503, ""), Holding(function)});
  EXPECT_THAT(client_->WaitReady<Function>({"default", "f"}, 1, Within(2300)),
              IsError(Code::kDeadlineExceeded, HasSubstr("its phase is Building")));
  const auto requests = server_.Requests();
  ASSERT_GE(requests.size(), 2u);
  EXPECT_THAT(requests[0].target, testing::EndsWith("&timeout=2"));
  EXPECT_THAT(requests[1].target, testing::EndsWith("&timeout=1"));
}

TEST_F(Client, ATimeThatRanOutInAnOutageIsNoOutage) {
  auto function = MakeFunction();
  function.status.phase = "Building";
  server_.On("GET", kPath, {Holding(function), Answer(503, "")});
  EXPECT_THAT(client_->WaitReady<Function>({"default", "f"}, 1, Within(1500)),
              IsError(Code::kDeadlineExceeded,
                      testing::AllOf(HasSubstr("timed out while waiting for Function default/f"),
                                     HasSubstr("its phase is Building; then "))));
}

TEST_F(Client, WaitReadyEndsByDeadlineStopAndDeletion) {
  auto function = MakeFunction();
  function.status.phase = "Building";
  server_.On("GET", kPath, {Holding(function)});
  EXPECT_THAT(
      client_->WaitReady<Function>({"default", "f"}, 1, Within(300)),
      IsError(Code::kDeadlineExceeded,
              HasSubstr("waiting for Function default/f to be ready; its phase is Building")));
  auto slow = Holding(function);
  slow.delay = milliseconds(20'000);
  server_.On("GET", kPath, {Holding(function), slow});
  std::stop_source stop;
  std::jthread stopper([&] {
    std::this_thread::sleep_for(milliseconds(400));
    stop.request_stop();
  });
  EXPECT_THAT(client_->WaitReady<Function>({"default", "f"}, 1,
                                           {base::Deadline::Never(), stop.get_token()}),
              IsError(Code::kCancelled, HasSubstr("its phase is Building")));
  server_.On("GET", kPath, {Holding(function), Refusal(Code::kNotFound, "no such function")});
  EXPECT_THAT(client_->WaitReady<Function>({"default", "f"}, 1, Within(5000)),
              IsError(Code::kNotFound, HasSubstr("no such")));
}

TEST_F(Client, FinalPhasesPerKind) {
  Trigger trigger;
  trigger.metadata.ns = trigger.metadata.name = "t";
  trigger.status.observed_generation = 1;
  for (const char* phase : {"Ready", "Disabled", "Failed"}) {
    trigger.status.phase = phase;
    server_.On("GET", "/v1/namespaces/t/triggers/t", {Holding(trigger)});
    EXPECT_THAT(client_->WaitReady<Trigger>({"t", "t"}, 1, Within(200)), IsOk()) << phase;
  }
  Job job;
  job.metadata.ns = job.metadata.name = "j";
  job.status.observed_generation = 1;
  for (const char* phase : {"Succeeded", "Failed", "Skipped"}) {
    job.status.phase = phase;
    server_.On("GET", "/v1/namespaces/j/jobs/j", {Holding(job)});
    EXPECT_THAT(client_->WaitReady<Job>({"j", "j"}, 1, Within(200)), IsOk()) << phase;
  }
  job.status.phase = "Running";
  server_.On("GET", "/v1/namespaces/j/jobs/j", {Holding(job)});
  EXPECT_THAT(client_->WaitReady<Job>({"j", "j"}, 1, Within(200)),
              IsError(Code::kDeadlineExceeded, HasSubstr("Running")));
}

TEST_F(Client, WaitGone) {
  auto again = MakeFunction();
  again.metadata.uid = "u2";
  server_.On("GET", kPath, {Holding(MakeFunction()), Refusal(Code::kNotFound, "gone")});
  EXPECT_THAT(client_->WaitGone(MakeFunction(), Within(5000)), IsOk());
  server_.On("GET", kPath, {Holding(MakeFunction()), Holding(again)});
  EXPECT_THAT(client_->WaitGone(MakeFunction(), Within(5000)), IsOk());
  server_.On("GET", kPath, {Holding(MakeFunction())});
  EXPECT_THAT(client_->WaitGone(MakeFunction(), Within(300)),
              IsError(Code::kDeadlineExceeded, HasSubstr("deletion of Function")));
}

TEST_F(Client, ListReadsEveryPage) {
  const auto page = [](const char* token) {
    nlohmann::json body{{"items", {api::ToJson(MakeFunction())}}};
    if (*token != '\0') body["continue"] = token;
    return Answer(200, body.dump());
  };
  server_.On("GET", "/v1/namespaces/default/functions", {page("a b")});
  server_.On("GET", "/v1/namespaces/default/functions?continue=a%20b", {page("")});
  const auto list = client_->List<Function>("default");
  ASSERT_THAT(list, IsOk());
  EXPECT_EQ(list->size(), 2u);
}

TEST_F(Client, UploadIsSkippedWhereTheCodeIs) {
  const auto path = "/v1/namespaces/default/code/" + kHash;
  int opened = 0;
  const transport::OpenBody zip = [&]() -> base::Result<transport::BodyReader> {
    ++opened;
    return [left = 3](char* out, size_t) mutable -> base::Result<size_t> {
      if (left-- <= 0) return 0;
      out[0] = 'z';
      return 1;
    };
  };
  server_.On("HEAD", path, {Answer(200, "")});
  ASSERT_THAT(client_->UploadCode("default", kHash, zip), IsOk());
  EXPECT_EQ(opened, 0);
  server_.On("HEAD", path, {Answer(404, "")});
  server_.On("PUT", path, {Answer(200, "", End::kNoAnswer), Answer(201, "{}")});
  ASSERT_THAT(client_->UploadCode("default", kHash, zip), IsOk());
  EXPECT_GE(opened, 2);
  EXPECT_EQ(server_.Requests().back().body, "zzz");
  EXPECT_THAT(client_->UploadCode("default", "../x", zip),
              IsError(Code::kInvalidArgument, HasSubstr("sha256:")));
  EXPECT_THAT(client_->HasCode("default", kHash), base::IsOkAndHolds(false));
}

TEST_F(Client, RunsAndRetries) {
  const std::string path = "/v1/namespaces/default/jobs/j/runs";
  api::Run run;
  run.spec.run_id = 3;
  nlohmann::json newest{{"items", {api::ToJson(run)}}, {"continue", "3"}};
  run.spec.run_id = 2;
  server_.On("GET", path, {Answer(200, newest.dump())});
  server_.On("GET", path + "?continue=3",
             {Answer(200, nlohmann::json{{"items", {api::ToJson(run)}}}.dump())});
  server_.On("POST", path, {Answer(503, ""), Answer(200, "{}")});
  const auto runs = client_->Runs({"default", "j"});
  ASSERT_THAT(runs, IsOk());
  ASSERT_EQ(runs->size(), 2u);
  EXPECT_EQ(runs->at(0).spec.run_id, 3);
  EXPECT_EQ(runs->at(1).spec.run_id, 2);
  ASSERT_THAT(client_->RetryRun({"default", "j"}, 3, 2), IsOk());
  EXPECT_EQ(server_.Requests().back().body, R"({"attempt":2,"runId":3})");
}

TEST_F(Client, AnswersThatAreNotOurs) {
  server_.On("GET", kPath, {Answer(200, "<html>hello</html>")});
  EXPECT_THAT(client_->Get<Function>({"default", "f"}),
              IsError(Code::kInternal, HasSubstr("not what this client knows")));
  auto moved = Answer(301, "");
  moved.headers.Add("Location", "https://other/");
  server_.On("GET", kPath, {moved});
  EXPECT_THAT(client_->Get<Function>({"default", "f"}),
              IsError(Code::kFailedPrecondition, HasSubstr("https://other/")));
  server_.On("GET", "/v1/namespaces/default/functions", {Answer(200, "[]")});
  EXPECT_THAT(client_->List<Function>("default"), IsError(Code::kInternal, HasSubstr("items")));
}

}  // namespace
}  // namespace sless::rest
