#include "server/handlers/handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "client/api/function.h"
#include "client/base/strings.h"
#include "server/handlers/object_handlers.h"
#include "server/handlers/routes.h"

namespace sless::handlers {
namespace {

using http::Response;

constexpr size_t kMaxObjectBody = 1024 * 1024;

}  // namespace

base::Result<int64_t> Number(const http::Request& request, const QueryDoc& doc,
                             std::optional<int64_t> fallback) {
  return request.QueryInt(doc.name, fallback.value_or(doc.fallback.value_or(0)), doc.min, doc.max);
}

base::Result<std::string> Word(const http::Request& request, const QueryDoc& doc) {
  const auto word = request.Query(doc.name);
  if (!word) return std::string();
  const auto words = base::Split(doc.words, '|');
  if (std::find(words.begin(), words.end(), *word) != words.end()) return *word;
  return base::Err(base::Code::kInvalidArgument,
                   fmt::format("query parameter \"{}\" must be one of {}, got \"{}\"", doc.name,
                               base::Join(words, ", "), base::Truncate(*word, 40)));
}

http::RouteOptions Routes::Guarded() const {
  http::RouteOptions options{.max_body = kMaxObjectBody};
  options.guard = [&auth = deps_.auth](const http::Request& request) -> base::Status {
    RETURN_IF_ERROR(auth.Check(request.headers.Get("Authorization")));
    return base::Ok();
  };
  return options;
}

void Routes::Add(std::string method, std::string path, RouteDoc doc, http::Handler handler) {
  list_.push_back({method, path, std::move(doc), true, kMaxObjectBody});
  router_.Add(std::move(method), std::move(path), std::move(handler), Guarded());
}

void Routes::AddUpload(std::string method, std::string path, RouteDoc doc, size_t max_body,
                       http::UploadHandler handler) {
  list_.push_back({method, path, std::move(doc), true, max_body});
  auto options = Guarded();
  options.max_body = max_body;
  router_.AddUpload(std::move(method), std::move(path), std::move(handler), std::move(options));
}

void Routes::AddPublic(std::string method, std::string path, RouteDoc doc, http::Handler handler) {
  list_.push_back({method, path, std::move(doc), false});
  router_.Add(std::move(method), std::move(path), std::move(handler),
              {.max_body = 0, .quiet = true});
}

void Routes::AddProbe(std::string path, RouteDoc doc, std::function<Response()> answer) {
  list_.push_back({"GET", path, std::move(doc), false});
  router_.AddDeferred("GET", std::move(path),
                      [answer = std::move(answer)](http::Request, const http::Responder& respond) {
                        respond(answer());
                      },
                      {.max_body = 0, .quiet = true});
}

void AddObjectRoutes(Routes& routes) {
  for (const auto& kind : Kinds()) {
    const auto handlers = std::make_shared<ObjectHandlers>(routes.deps(), kind);
    const std::string name(kind.name);
    const auto list = "/v1/namespaces/{namespace}/" + std::string(kind.plural);
    const auto one = list + "/{name}";
    const std::vector<HeaderDoc> conditions{kIfMatch, kIfNoneMatch};
    const std::vector<HeaderDoc> version{{"ETag", "resourceVersion in double quotes"}};
    std::vector<Does> writes{Does::kReadStore, Does::kHeedConditions, Does::kCheckBody};
    if (kind.name == api::kKindFunction) writes.push_back(Does::kUseFiles);  // is its code there?
    auto changes = writes;
    changes.push_back(Does::kFindByName);
    routes.Add("GET", list,
               {.summary = "List, ordered by name",
                .schema = name + "List",
                .does = {Does::kReadStore},
                .query = {kLimit, kContinue}},
               [handlers](http::Request& request) { return handlers->List(request); });
    routes.Add("GET", one,
               {.summary = "Read; with wait=ready answers as soon as status.observedGeneration has "
                           "reached generation in a final phase, with wait=gone a 404 as soon as "
                           "the object is deleted, or what is there at the timeout",
                .schema = name,
                .does = {Does::kReadStore, Does::kFindByName},
                .query = {kReadWait, kGeneration, kWaitTimeout},
                .answer_headers = version},
               [handlers](http::Request& request) { return handlers->Get(request); });
    routes.Add("PUT", one,
               {.summary = "Create (201) or replace (200); the same body changes nothing. A "
                           "metadata.resourceVersion in the body replaces only that version",
                .statuses = {200, 201},
                .schema = name,
                .does = writes,
                .body = BodyDoc{name + "Input", {"application/json"}, kAnyType},
                .headers = conditions,
                .answer_headers = version},
               [handlers](http::Request& request) { return handlers->Put(request); });
    routes.Add("PATCH", one,
               {.summary = "Change parts, as JSON merge patch",
                .schema = name,
                .does = changes,
                .body = BodyDoc{name + "Patch",
                                {"application/merge-patch+json", "application/json"},
                                "RFC 7396, on spec and metadata.annotations; of any other "
                                "Content-Type, or of none, it is a 415"},
                .headers = conditions,
                .answer_headers = version},
               [handlers](http::Request& request) { return handlers->Patch(request); });
    routes.Add("DELETE", one,
               {.summary = "Ask for deletion; 404 when it is done. With wait=gone answers 204 when "
                           "it is, or 202 at the timeout",
                .statuses = {202, 204},
                .schema = name,
                .does = {Does::kReadStore, Does::kFindByName, Does::kHeedConditions},
                .query = {kDeleteWait, kWaitTimeout},
                .headers = conditions,
                .answer_headers = version},
               [handlers](http::Request& request) { return handlers->Delete(request); });
  }
  // Served by the gateway, which has the slots.
  routes.Document(
      "POST", "/v1/namespaces/{namespace}/functions/{name}/invoke",
      {.summary =
           "Call the function with the body as its event; the answer is what the handler returned",
       .schema = "Any",
       .does = {Does::kFindByName, Does::kCheckBody, Does::kCallHandler},
       .body =
           BodyDoc{"Any", {"application/json"}, fmt::format("none is {{}}; {}", kAnyType), false},
       .answer_headers = {{"X-Sless-Revision", "number of the revision that was called"}}});
}

void RegisterRoutes(http::Router& router, const Deps& deps) {
  // Handlers keep references into this copy; the last of them ends it.
  const auto held = std::make_shared<const Deps>(deps);
  Routes routes(router, *held);
  AddObjectRoutes(routes);
  AddCodeRoutes(routes);
  AddRunRoutes(routes);
  AddLogRoutes(routes);
  AddServerRoutes(routes);
  const auto document = std::make_shared<std::string>();
  routes.Add("GET", "/v1/openapi.json", {.summary = "This document", .schema = "Any"},
             [held, document](http::Request&) { return Response::Json(200, *document); });
  *document = OpenApi(routes.list());
}

std::unique_ptr<store::Subscription> WakeOnChange(store::ObjectStore& store, http::WakeHub& hub) {
  return store.Subscribe(
      [&hub](const store::Change& change) { hub.Notify(change.key.ToString()); });
}

}  // namespace sless::handlers
