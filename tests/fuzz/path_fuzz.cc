// Paths and URLs: method and target. A path that is taken means one thing however often it is
// decoded by others.

#include "client/base/strings.h"
#include "client/transport/url.h"
#include "server/http/path.h"
#include "server/http/router.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {
namespace {

const http::Router& Routes() {
  static const http::Router router = [] {
    http::Router out;
    const http::Handler none = [](http::Request&) { return http::Reply(http::Response()); };
    out.Add("GET", "/healthz", none);
    out.Add("GET", "/v1/namespaces/{namespace}/functions/{name}", none);
    out.Add("PUT", "/v1/namespaces/{namespace}/functions/{name}", none);
    out.Add("*", "/fn/{namespace}/{name}/*", none);
    return out;
  }();
  return router;
}

void CheckCanonical(const std::string& path) {
  const auto canonical = http::CanonicalPath(path);
  Require(!canonical.empty() && canonical[0] == '/', "a canonical path begins with a slash");
  const std::string framed = canonical + "/";
  for (const char* bad : {"/../", "/./", "\\"})
    Require(framed.find(bad) == std::string::npos, "a canonical path has no dot segment");
  Require(canonical.find("//") == std::string::npos, "a canonical path has no empty segment");
  Require(canonical.find('\0') == std::string::npos, "a canonical path has no NUL");
}

}  // namespace

std::vector<std::string> Seeds() {
  return {"GET\n/healthz",
          "GET\n/v1/namespaces/default/functions/hello",
          "PUT\n/v1/namespaces/a%2Fb/functions/%2e%2e",
          "POST\n/fn/default/hello//a/%2e%2e/%5c..;x/%00",
          "DELETE\n/fn/a/b/c%252e%252e%252fd?x=%zz&y",
          "GET\nhttps://user@host:8443/a?b#c",
          "GET\nunix:/run/x.sock:/v1",
          "GET\nhttp://[::1]:80/"};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  fuzz::Parts parts(fuzz::Text(data, size));
  http::Request request;
  request.method = parts.Line();
  request.target = parts.Rest();
  const size_t mark = request.target.find('?');
  request.path = request.target.substr(0, mark);
  if (mark != std::string::npos) request.query = request.target.substr(mark + 1);

  if (http::CheckPath(request.path)) fuzz::CheckCanonical(request.path);
  const auto match = fuzz::Routes().Find(request);
  fuzz::Require(match.route || match.refusal.status >= 400, "what is not routed is refused");
  if (match.route) {
    fuzz::Require(http::CheckPath(request.path).has_value(), "what is routed is a sound path");
    fuzz::Require(match.route->pattern.rfind("/fn/", 0) != 0 || request.path.rfind("/fn/", 0) == 0,
                  "nothing else gets below /fn");
    if (!request.rest.empty()) {
      fuzz::Require(request.rest[0] == '/', "the rest begins with a slash");
      fuzz::CheckCanonical(request.rest);
    }
    for (const auto& [name, value] : request.params) {
      fuzz::Require(!value.empty() && value.find('/') == std::string::npos,
                    "a parameter is one segment");
    }
  }
  (void)request.Query("x");
  const auto escaped = base::PercentEncode(request.target);
  fuzz::Require(base::PercentDecode(escaped) == request.target,
                "an escaped text is the same when it is read");
  const auto bytes = base::Base64Encode(request.target);
  fuzz::Require(base::Base64Decode(bytes) == request.target, "base64 is the same when it is read");
  (void)base::Base64Decode(request.target);
  const auto cut = base::Truncate(request.target, 20);
  fuzz::Require(!base::IsUtf8(request.target) || base::IsUtf8(cut),
                "a text that is cut stays UTF-8");
  if (const auto url = transport::ParseUrl(request.target)) {
    fuzz::Require(!url->target.empty() && url->target[0] == '/',
                  "a URL's target begins with a slash");
    for (const unsigned char c : url->target + url->HostHeader())
      fuzz::Require(c > 0x20 && c != 0x7f, "no URL splits a request");
  }
  return 0;
}
