#include "server/gateway/trigger_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "client/base/strings.h"
#include "server/http/path.h"

namespace sless::gateway {
namespace {

using base::Code;

bool IsPrefix(std::string_view prefix, std::string_view path) {
  if (prefix == "/") return true;
  return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
}

bool ServesMethod(const HttpRoute& route, std::string_view method) {
  const auto& methods = route.spec.methods;
  const auto has = [&](std::string_view m) {
    return std::find(methods.begin(), methods.end(), m) != methods.end();
  };
  return methods.empty() || has(method) || (method == "HEAD" && has("GET"));
}

TriggerMatch Refuse(Code code, std::string message, std::string reason) {
  return {nullptr, {code, std::move(message), "", std::move(reason), {}}, ""};
}

TriggerMatch Private(const FunctionRoute& f) {
  return Refuse(Code::kNotFound,
                fmt::format("function {0}/{1} is private: it has no http trigger. To let "
                            "/fn/{0}/{1} answer, add a sless_trigger with type = \"http\" and "
                            "function = \"{1}\"; with a token it can be called at "
                            "POST /v1/namespaces/{0}/functions/{1}/invoke",
                            f.ns, f.name),
                "PrivateFunction");
}

}  // namespace

TriggerMatch MatchTrigger(const FunctionRoute& function, std::string_view method,
                          std::string_view path) {
  if (function.http.empty()) return Private(function);
  std::vector<const HttpRoute*> best;
  size_t length = 0;
  for (const auto& route : function.http) {
    const auto prefix = http::CanonicalPath(route.spec.path.empty() ? "/" : route.spec.path);
    if (!IsPrefix(prefix, path) || prefix.size() < length) continue;
    if (prefix.size() > length) best.clear();
    length = prefix.size();
    best.push_back(&route);
  }
  if (best.empty()) {
    return Refuse(Code::kNotFound,
                  fmt::format("no http trigger of function {}/{} serves this path", function.ns,
                              function.name),
                  "NoSuchPath");
  }
  // The same path twice: the stricter one wins, so that no second trigger opens what the first one
  // closes.
  std::sort(best.begin(), best.end(), [](const auto* a, const auto* b) {
    const bool a_open = a->spec.auth != "token", b_open = b->spec.auth != "token";
    return std::tie(a_open, a->trigger) < std::tie(b_open, b->trigger);
  });
  const HttpRoute* disabled = nullptr;
  std::vector<std::string> allowed;
  for (const auto* route : best) {
    if (!ServesMethod(*route, method)) {
      for (const auto& served : route->spec.methods) {
        allowed.push_back(served);
        if (served == "GET") allowed.emplace_back("HEAD");
      }
    } else if (route->enabled) {
      return {route, {}, ""};
    } else if (disabled == nullptr) {
      disabled = route;
    }
  }
  if (disabled != nullptr) {
    return Refuse(Code::kUnavailable,
                  fmt::format("http trigger \"{}\" of function {}/{} is disabled",
                              disabled->trigger, function.ns, function.name),
                  "TriggerDisabled");
  }
  std::sort(allowed.begin(), allowed.end());
  allowed.erase(std::unique(allowed.begin(), allowed.end()), allowed.end());
  auto match = Refuse(Code::kInvalidArgument,
                      fmt::format("method {} is not served here; served: {}",
                                  base::Truncate(method, 32), base::Join(allowed, ", ")),
                      "MethodNotAllowed");
  match.allow = base::Join(allowed, ", ");
  return match;
}

}  // namespace sless::gateway
