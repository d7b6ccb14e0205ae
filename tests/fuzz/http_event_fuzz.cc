// HTTP requests that become events, and results that become HTTP answers. Lines: method, rest of
// the path, query, headers up to an empty line; then the body, which is also taken for a handler's
// result.

#include <nlohmann/json.hpp>

#include "client/base/json.h"
#include "server/runner/http_event.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {
namespace {

void CheckEvent(const http::Request& request) {
  const auto text = runner::HttpEvent(request, base::TimePoint(std::chrono::seconds(1767225600)));
  const auto event = base::ParseJson(text);
  Require(event && event->is_object(), "an event is a JSON object");
  for (const char* name : {"httpMethod", "path", "rawPath", "headers", "multiValueHeaders",
                           "queryStringParameters", "multiValueQueryStringParameters",
                           "rawQueryString", "body", "isBase64Encoded", "requestContext"}) {
    Require(event->contains(name), name);
  }
  for (const auto& [name, value] : (*event)["headers"].items()) {
    Require(value.is_string() && (*event)["multiValueHeaders"].contains(name),
            "each header is there in both forms");
    Require(name.rfind("x-sless-", 0) != 0, "internal headers stay inside");
  }
}

void CheckAnswer(std::string_view result) {
  const auto answer = runner::HttpAnswer(result);
  if (!answer) {
    Require(answer.error().reason == "HandlerError", "a wrong answer is the handler's error");
    return;
  }
  Require(answer->status >= 200 && answer->status <= 599, "the status is one of HTTP");
  for (const auto& [name, value] : answer->headers) {
    Require(!name.empty(), "a header has a name");
    for (const unsigned char c : name + value)
      Require(c >= 0x20 || c == '\t', "no header holds a control character");
    for (const char* ours :
         {"content-length", "transfer-encoding", "connection", "x-request-id", "x-sless-error"}) {
      Require(!http::SameNoCase(name, ours), "headers of the connection are not the function's");
    }
  }
}

}  // namespace

std::vector<std::string> Seeds() {
  return {
      "GET\n/a%20b/c\nx=1&x=2&y=%zz&+=%2B\nHost: h\nCookie: a\nCookie: b\nX-Forwarded-For: "
      "1.2.3.4, 5.6.7.8\n\n",
      "POST\n\n\nContent-Type: text/plain\nX-Sless-Prefix: /fn/a/b\nUser-Agent: \xe9\n\nbody \xff",
      "PUT\n/"
      "\n\n\n{\"statusCode\":201,\"headers\":{\"X-A\":\"b\",\"N\":1},\"multiValueHeaders\":{\"Set-"
      "Cookie\":[\"a=1\",\"b=2\"]},"
      "\"cookies\":[\"c=3\"],\"body\":\"aGk=\",\"isBase64Encoded\":true}",
      "GET\n/\n\n\n{\"statusCode\":200,\"body\":{\"a\":[1,2.50,null]}}",
      "GET\n/\n\n\n[1,\"x\",{\"statusCode\":1}]",
      "GET\n/"
      "\n\n\n{\"statusCode\":204,\"headers\":{\"Content-Length\":\"7\",\"X-Sless-Error\":\"Busy\"},"
      "\"body\":null}"};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  fuzz::Parts parts(fuzz::Text(data, size));
  http::Request request;
  request.method = parts.Line();
  request.rest = parts.Line();
  request.query = parts.Line();
  for (auto line = parts.Line(); !line.empty(); line = parts.Line()) {
    const size_t colon = line.find(':');
    request.headers.Add(std::string(line.substr(0, colon)),
                        colon == std::string_view::npos ? "" : std::string(line.substr(colon + 1)));
  }
  request.body = parts.Rest();
  fuzz::CheckEvent(request);
  if (base::CheckJson(request.body))
    fuzz::CheckAnswer(request.body);  // the runner takes no result that is no JSON
  return 0;
}
