// The parts of the runner that need no worker.

#include "server/runner/runner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "client/base/testing/result_matchers.h"
#include "server/http/head_writer.h"
#include "server/runner/frames.h"
#include "server/runner/http_event.h"
#include "server/runner/json_text.h"
#include "server/runner/log_writer.h"
#include "server/runner/manifest.h"

namespace sless::runner {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(FrameReader, CutsAStreamWhereverItIsCut) {
  const std::string stream =
      EncodeFrame("{\"a\":1}", "") + EncodeFrame("{}", "payload") + EncodeFrame("", "");
  for (size_t piece = 1; piece < stream.size(); ++piece) {
    FrameReader reader;
    std::vector<std::string> found;
    for (size_t at = 0; at < stream.size(); at += piece) {
      reader.Feed(std::string_view(stream).substr(at, piece));
      for (auto frame = reader.Next(); frame && *frame; frame = reader.Next())
        found.push_back((*frame)->head + "|" + (*frame)->payload);
    }
    EXPECT_THAT(found, ElementsAre("{\"a\":1}|", "{}|payload", "|")) << piece;
  }
}

TEST(FrameReader, RefusesWhatIsTooLarge) {
  FrameReader reader;
  reader.Feed(std::string("\x7f\xff\xff\xff\x7f\xff\xff\xff", 8));
  EXPECT_THAT(reader.Next(), IsError(Code::kInvalidArgument, HasSubstr("at most")));
}

TEST(LineSplitter, CutsLongLines) {
  LineSplitter lines;
  std::vector<size_t> sizes;
  const auto on_line = [&](std::string_view line) { sizes.push_back(line.size()); };
  lines.Feed("abc\n\n", on_line);
  lines.Feed(std::string(kMaxLine + 5, 'x'), on_line);
  lines.End(on_line);
  EXPECT_THAT(sizes, ElementsAre(3, 0, kMaxLine, 5));
  sizes.clear();
  std::string wide;
  for (size_t i = 0; i < kMaxLine / 2; ++i) wide += "日";
  lines.Feed(wide + "\n", on_line);
  EXPECT_THAT(sizes, ElementsAre(kMaxLine - 1, kMaxLine / 2 * 3 - (kMaxLine - 1)))
      << "a character of three bytes is not cut";
}

TEST(WorkerCommand, KnowsItsRuntimes) {
  WorkerFacts facts{"python3.11", "/usr/bin/python3.11", "/w.py", "/code",
                    "/deps",      "handler.handle",      4,       128};
  EXPECT_THAT(WorkerCommand(facts), IsOk());
  facts.runtime = "nodejs20";
  EXPECT_THAT(WorkerCommand(facts).value(), testing::Contains("--max-old-space-size=96"));
  facts.runtime = "ruby3";
  EXPECT_THAT(WorkerCommand(facts), IsError(Code::kInvalidArgument, HasSubstr("ruby3")));
}

json EventOf(const http::Request& request) {
  return json::parse(HttpEvent(request, base::TimePoint(std::chrono::seconds(1))));
}

TEST(HttpEvent, HasTheShapeOfOtherClouds) {
  http::Request request;
  request.method = "POST";
  request.rest = "/a%20b/%C3%A9";
  request.query = "x=1&x=2+3&flag&y=%41&=&bad=%zz";
  request.body = "h\xc3\xa9";
  request.request_id = "r1";
  request.headers.Add("Accept", "a");
  request.headers.Add("ACCEPT", "b");
  request.headers.Add("Cookie", "c=1");
  request.headers.Add("Cookie", "d=2");
  request.headers.Add("X-Latin", "caf\xe9");
  request.headers.Add("X-Forwarded-For", "6.6.6.6, 10.0.0.9");
  request.headers.Add("X-Forwarded-Host", "api.example");
  request.headers.Add("X-Sless-Prefix", "/fn/default/x");
  request.headers.Add("X-Sless-Protocol", "HTTP/1.0");
  const json event = EventOf(request);
  EXPECT_EQ(event["httpMethod"], "POST");
  EXPECT_EQ(event["path"], "/a b/é");
  EXPECT_EQ(event["rawPath"], "/a%20b/%C3%A9");
  EXPECT_EQ(event["body"], "hé");
  EXPECT_EQ(event["isBase64Encoded"], false);
  EXPECT_EQ(event["headers"]["accept"], "a,b");
  EXPECT_EQ(event["headers"]["cookie"], "c=1; d=2");
  EXPECT_EQ(event["headers"]["x-latin"], "café");
  EXPECT_FALSE(event["headers"].contains("x-sless-prefix"));
  EXPECT_EQ(event["multiValueHeaders"]["accept"], json({"a", "b"}));
  EXPECT_EQ(event["queryStringParameters"]["x"], "2 3");
  EXPECT_EQ(event["queryStringParameters"]["flag"], "");
  EXPECT_EQ(event["queryStringParameters"]["y"], "A");
  EXPECT_EQ(event["queryStringParameters"]["bad"], "%zz");
  EXPECT_EQ(event["multiValueQueryStringParameters"]["x"], json({"1", "2 3"}));
  EXPECT_EQ(event["requestContext"]["requestId"], "r1");
  EXPECT_EQ(event["requestContext"]["identity"]["sourceIp"], "10.0.0.9");
  EXPECT_EQ(event["requestContext"]["http"]["method"], "POST");
  EXPECT_EQ(event["requestContext"]["protocol"], "HTTP/1.0");
  EXPECT_EQ(event["requestContext"]["http"]["protocol"], "HTTP/1.0");
  EXPECT_EQ(event["requestContext"]["path"], "/fn/default/x/a b/é");
  EXPECT_EQ(event["requestContext"]["domainName"], "api.example");
}

TEST(HttpEvent, BytesAreBase64AndNothingIsNull) {
  http::Request request;
  request.method = "PUT";
  request.body = std::string("\x00\xff", 2);
  const json event = EventOf(request);
  EXPECT_EQ(event["isBase64Encoded"], true);
  EXPECT_EQ(event["body"], "AP8=");
  EXPECT_EQ(event["path"], "/");
  request.body.clear();
  EXPECT_EQ(EventOf(request)["body"], nullptr);
  EXPECT_EQ(EventOf(request)["queryStringParameters"], json::object());
}

// A trigger matched on the decoded path: the handler must not see another one.
TEST(HttpEvent, APathIsDecodedWhateverItHolds) {
  http::Request request;
  request.method = "GET";
  request.rest = "/%61dmin/%ff/%C3%A9";
  request.headers.Add("X-Sless-Prefix", "/fn/d/f");
  const json event = EventOf(request);
  EXPECT_EQ(event["path"], "/admin/\xef\xbf\xbd/é");
  EXPECT_EQ(event["requestContext"]["path"], "/fn/d/f/admin/\xef\xbf\xbd/é");
  EXPECT_EQ(event["rawPath"], "/%61dmin/%ff/%C3%A9");
}

TEST(HttpEvent, AnyBodyFitsIntoAFrame) {
  http::Request request;
  request.method = "POST";
  const auto event = [&] { return HttpEvent(request, base::TimePoint()); };
  for (const char c : {'\0', '"'}) {
    request.body = std::string(6 << 20, c);
    EXPECT_LT(event().size(), kMaxBodyText + 4096) << static_cast<int>(c);
  }
  // What fits is text, control characters or not.
  request.body = std::string(2 << 20, '\x0b');
  EXPECT_THAT(event(), HasSubstr(R"("isBase64Encoded":false)"));
  request.body += 'x';
  EXPECT_THAT(event(), HasSubstr(R"("isBase64Encoded":true)"));
  request.body = "a text with \x1b[1mcolours\x1b[0m\x02";
  EXPECT_EQ(EventOf(request)["body"], request.body);
}

struct AnswerCase {
  const char* name;
  const char* result;
  int status;        // 0: an error
  const char* body;  // or a part of the error
  const char* type = "application/json";
};
const std::string kLargeHeader =
    R"({"statusCode":200,"headers":{"x-header-name":")" + std::string(64 * 1024, 'a') + R"("}})";
class HttpAnswerTest : public testing::TestWithParam<AnswerCase> {};
TEST_P(HttpAnswerTest, TurnsAResultIntoAnAnswer) {
  const AnswerCase& c = GetParam();
  const auto answer = HttpAnswer(c.result);
  if (c.status == 0) {
    ASSERT_THAT(answer, IsError(Code::kFailedPrecondition, HasSubstr(c.body)));
    EXPECT_EQ(answer.error().reason, "HandlerError");
    return;
  }
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->status, c.status);
  EXPECT_EQ(answer->body, c.body);
  EXPECT_EQ(answer->headers.Get("Content-Type"), c.type);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, HttpAnswerTest,
    testing::Values(
        AnswerCase{"Object", R"({"a":12345678901234567890})", 200, R"({"a":12345678901234567890})"},
        AnswerCase{"String", R"("text")", 200, R"("text")"},
        AnswerCase{"Null", "null", 200, "null"},
        AnswerCase{"InnerStatusCode", R"({"a":{"statusCode":500}})", 200,
                   R"({"a":{"statusCode":500}})"},
        AnswerCase{"Described",
                   R"({"statusCode":201,"body":"x","headers":{"content-type":"text/plain"}})", 201,
                   "x", "text/plain"},
        AnswerCase{"ObjectBody", R"({"statusCode":200,"body":{"a":1}})", 200, R"({"a":1})"},
        AnswerCase{
            "BodyKeepsDigitsAndOrder",
            R"({ "statusCode" : 200 , "body" : {"c": 12345678901234567890123, "b":0.1234567890123456789, "a":["}\"",{}]} })",
            200, R"({"c": 12345678901234567890123, "b":0.1234567890123456789, "a":["}\"",{}]})"},
        AnswerCase{"NumberBody", R"({"body":100000000000000000000,"statusCode":200})", 200,
                   "100000000000000000000"},
        AnswerCase{"ListBody", R"({"body":[1, {"body":2}],"statusCode":200})", 200,
                   R"([1, {"body":2}])"},
        AnswerCase{"LastOfAName", R"({"body":1,"statusCode":500,"b\u006fdy":2,"statusCode":200})",
                   200, "2"},
        AnswerCase{"NullBody", R"({"statusCode":200,"body":null})", 200, "", ""},
        AnswerCase{"ResetContent", R"({"statusCode":205,"body":"x"})", 205, "", ""},
        AnswerCase{"StatusNull", R"({"statusCode":null})", 0, "statusCode is of type null"},
        AnswerCase{"CookiesNull", R"({"statusCode":200,"cookies":null,"body":"x"})", 200, "x"},
        AnswerCase{"CookiesObject", R"({"statusCode":200,"cookies":{"a":1}})", 0,
                   "cookies is of type object, want an array"},
        AnswerCase{"Base64", R"({"statusCode":200,"body":"aGk=","isBase64Encoded":true})", 200,
                   "hi"},
        AnswerCase{"NoContent", R"({"statusCode":204,"body":"x"})", 204, "", ""},
        AnswerCase{"StatusTooLow", R"({"statusCode":99})", 0, "statusCode is 99"},
        AnswerCase{"StatusInformational", R"({"statusCode":101})", 0, "want 200 to 599"},
        AnswerCase{"StatusTooHigh", R"({"statusCode":600})", 0, "600"},
        AnswerCase{"StatusText", R"({"statusCode":"200"})", 0, "statusCode is of type string"},
        AnswerCase{"StatusFraction", R"({"statusCode":200.5})", 0, "want a whole number"},
        AnswerCase{"HeaderNewline", R"({"statusCode":200,"headers":{"x":"a\r\nSet-Cookie: b"}})", 0,
                   "control character"},
        AnswerCase{"HeaderNul", "{\"statusCode\":200,\"headers\":{\"x\":\"a\\u0000\"}}", 0,
                   "control character"},
        AnswerCase{"HeaderName", R"({"statusCode":200,"headers":{"x y":"a"}})", 0,
                   "no name of a header"},
        AnswerCase{"HeaderObject", R"({"statusCode":200,"headers":{"x":{}}})", 0,
                   "header \"x\" is of type object"},
        AnswerCase{"HeadersList", R"({"statusCode":200,"headers":[]})", 0,
                   "headers is of type array"},
        AnswerCase{"HeadersTooLarge", kLargeHeader.c_str(), 0,
                   "its headers have 65553 bytes, at most 65536 are allowed"},
        AnswerCase{"CookiesText", R"({"statusCode":200,"cookies":"a=1"})", 0,
                   "cookies is of type string, want an array"},
        AnswerCase{"BadBase64", R"({"statusCode":200,"body":"!","isBase64Encoded":true})", 0,
                   "no base64"},
        AnswerCase{"Base64OfObject", R"({"statusCode":200,"body":{},"isBase64Encoded":true})", 0,
                   "want a string of base64"},
        AnswerCase{"FlagText", R"({"statusCode":200,"isBase64Encoded":"yes"})", 0,
                   "isBase64Encoded"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(HttpAnswer, HeadersKeepTheirDigitsAndOrder) {
  const auto answer = HttpAnswer(
      R"({"statusCode":200,"headers":{"z":100000000000000000000,"a":"\u00e9","m":[1.50,true]}})");
  ASSERT_THAT(answer, IsOk());
  std::string all;
  for (const auto& [name, value] : answer->headers) all += name + "=" + value + " ";
  EXPECT_EQ(all, "z=100000000000000000000 a=é m=1.50 m=true ");
}

TEST(HttpAnswer, TheGatewayTakesAllHeadersThatPass) {
  std::string many = R"({"statusCode":200,"headers":{"x":[)";
  for (int i = 0; i < 64 * 1024 / 6; ++i) many += i == 0 ? "1" : ",1";  // "x: 1\r\n" each
  EXPECT_THAT(HttpAnswer(many + "]}}"), IsOk());
  EXPECT_THAT(HttpAnswer(many + ",1,1]}}"),
              IsError(Code::kFailedPrecondition, HasSubstr("its headers have 65544 bytes")));
}

struct PartsCase {
  const char* name;
  const char* text;
  const char* parts;  // name=value, each with a ';'
};
class PartsOfTest : public testing::TestWithParam<PartsCase> {};
TEST_P(PartsOfTest, CutsWhereTheTextDoes) {
  std::string parts;
  for (const auto& [name, value] : PartsOf(GetParam().text))
    parts += name + "=" + std::string(value) + ";";
  EXPECT_EQ(parts, GetParam().parts);
}
INSTANTIATE_TEST_SUITE_P(
    Cases, PartsOfTest,
    testing::Values(
        PartsCase{"Empty", "{}", ""}, PartsCase{"EmptyList", " [ ] ", ""},
        PartsCase{"Scalars", R"({"a":1,"b":"x","c":null,"d":-1.5e3})",
                  R"(a=1;b="x";c=null;d=-1.5e3;)"},
        PartsCase{"Space", " {\t\"a\" :\n1 ,\r\n\"b\": [ 1 , 2 ] } ", "a=1;b=[ 1 , 2 ];"},
        PartsCase{"Nested", R"({"a":{"b":[{"c":1},{}],"d":[]},"e":[[],[[2]]]})",
                  R"(a={"b":[{"c":1},{}],"d":[]};e=[[],[[2]]];)"},
        PartsCase{"Brackets", R"({"}\"":"]\\","{":"\\\"["})", R"(}"="]\\";{="\\\"[";)"},
        PartsCase{"List", R"([1,"a,b",[],{"x":1},true])", R"(=1;="a,b";=[];={"x":1};=true;)"},
        PartsCase{"EmptyName", R"({"":0})", "=0;"}, PartsCase{"Neither", "12", ""},
        PartsCase{"Text", R"("{}")", ""}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(HttpAnswer, HeadersOfTheConnectionAndOfOursAreNotTheFunctions) {
  const auto answer = HttpAnswer(
      R"({"statusCode":200,"headers":{"Content-Length":5,"Connection":"close","Transfer-Encoding":"chunked",
      "X-Sless-Error":"Draining","X-Request-Id":"z","x-mine":1,"ok":true},"multiValueHeaders":{"set-cookie":["a=1","b=2"]},"cookies":["c=3"]})");
  ASSERT_THAT(answer, IsOk());
  EXPECT_EQ(answer->headers.size(), 5u);
  EXPECT_EQ(answer->headers.Get("x-mine"), "1");
  EXPECT_EQ(answer->headers.Count("Set-Cookie"), 3u);
}

}  // namespace
}  // namespace sless::runner
