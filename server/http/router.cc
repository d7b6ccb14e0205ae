#include "server/http/router.h"

#include <fmt/format.h>

#include <algorithm>

#include "client/base/strings.h"
#include "server/http/path.h"

namespace sless::http {
namespace {

bool IsParam(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

bool SegmentsMatch(const Router::Route& route, const std::vector<std::string_view>& path) {
  if (route.rest ? path.size() < route.segments.size() : path.size() != route.segments.size())
    return false;
  for (size_t i = 0; i < route.segments.size(); ++i) {
    if (!IsParam(route.segments[i]) && route.segments[i] != path[i]) return false;
  }
  return true;
}

bool MethodMatches(const Router::Route& route, std::string_view method) {
  return route.method == "*" || route.method == method ||
         (method == "HEAD" && route.method == "GET");
}

base::Status FillRequest(const Router::Route& route, const std::vector<std::string_view>& path,
                         Request& request) {
  size_t length = 0;
  for (size_t i = 0; i < route.segments.size(); ++i) {
    length += 1 + path[i].size();
    RETURN_IF_ERROR(CheckStrictSegment(path[i]));
    if (!IsParam(route.segments[i])) continue;
    const auto name = route.segments[i].substr(1, route.segments[i].size() - 2);
    ASSIGN_OR_RETURN(request.params[name], base::PercentDecode(path[i]));
  }
  if (route.rest) request.rest = request.path.substr(length);
  request.route = route.pattern;
  return base::Ok();
}

Response NotAllowed(const Request& request, const std::vector<std::string>& allowed) {
  auto response = Response::FromError(
      {base::Code::kInvalidArgument,
       fmt::format("method {} is not supported here; supported: {}",
                   base::Truncate(request.method, 32), base::Join(allowed, ", ")),
       "",
       "MethodNotAllowed",
       {}});
  response.headers.Add("Allow", base::Join(allowed, ", "));
  return response;
}

}  // namespace

void Router::Add(std::string method, std::string pattern, Handler handler, RouteOptions options) {
  AddRoute(std::move(method), std::move(pattern), std::move(handler), std::move(options));
}
void Router::AddUpload(std::string method, std::string pattern, UploadHandler handler,
                       RouteOptions options) {
  AddRoute(std::move(method), std::move(pattern), std::move(handler), std::move(options));
}
void Router::AddDeferred(std::string method, std::string pattern, DeferredHandler handler,
                         RouteOptions options) {
  AddRoute(std::move(method), std::move(pattern), std::move(handler), std::move(options));
}

void Router::AddRoute(std::string method, std::string pattern, Target target,
                      RouteOptions options) {
  Route route{std::move(method), pattern, {}, false, std::move(target), std::move(options)};
  for (const auto segment : PathSegments(pattern)) route.segments.emplace_back(segment);
  if (route.segments.back() == "*") {
    route.rest = true;
    route.segments.pop_back();
  }
  routes_.push_back(std::move(route));
}

Router::Match Router::Find(Request& request) const {
  if (const auto status = CheckPath(request.path); !status)
    return {nullptr, Response::FromError(status.error())};
  const auto path = PathSegments(request.path);
  std::vector<std::string> allowed;
  for (const auto& route : routes_) {
    if (!SegmentsMatch(route, path)) continue;
    if (!MethodMatches(route, request.method)) {
      if (std::find(allowed.begin(), allowed.end(), route.method) == allowed.end()) {
        allowed.push_back(route.method);
        if (route.method == "GET") allowed.push_back("HEAD");
      }
      continue;
    }
    if (const auto status = FillRequest(route, path, request); !status) {
      return {nullptr, Response::FromError(status.error())};
    }
    return {&route, {}};
  }
  if (!allowed.empty()) return {nullptr, NotAllowed(request, allowed)};
  return {nullptr, Response::FromError(
                       {base::Code::kNotFound,
                        fmt::format("there is nothing at {}", base::Truncate(request.path, 200)),
                        "",
                        "NoSuchPath",
                        {}})};
}

}  // namespace sless::http
