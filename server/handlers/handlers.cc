#include "server/handlers/handlers.h"

#include <memory>

#include "server/handlers/object_handlers.h"
#include "server/handlers/routes.h"

namespace sless::handlers {
namespace {

using http::Response;

constexpr size_t kMaxObjectBody = 1024 * 1024;

}  // namespace

http::RouteOptions Routes::Guarded() const {
  http::RouteOptions options{.max_body = kMaxObjectBody};
  options.guard = [&auth = deps_.auth](const http::Request& request) -> base::Status {
    RETURN_IF_ERROR(auth.Check(request.headers.Get("Authorization")));
    return base::Ok();
  };
  return options;
}

void Routes::Add(std::string method, std::string path, RouteDoc doc, http::Handler handler) {
  list_.push_back({method, path, std::move(doc), true});
  router_.Add(std::move(method), std::move(path), std::move(handler), Guarded());
}

void Routes::AddUpload(std::string method, std::string path, RouteDoc doc, size_t max_body,
                       http::UploadHandler handler) {
  list_.push_back({method, path, std::move(doc), true});
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
    routes.Add("GET", list,
               {"List, ordered by name",
                {200},
                name + "List",
                "",
                {{"limit", "at most so many, fewer where they are large", "", 1000, 1},
                 {"continue", "from the page before"}}},
               [handlers](http::Request& request) { return handlers->List(request); });
    routes.Add("GET", one,
               {"Read; with wait=ready answers as soon as status.observedGeneration has reached "
                "generation in a final phase, with wait=gone a "
                "404 as soon as the object is deleted, or what is there at the timeout",
                {200},
                name,
                "",
                {{"wait", "for what", "ready|gone"},
                 {"generation", "default the one of now", "", INT64_MAX},
                 {"timeout", "seconds, default 25", "", 60}}},
               [handlers](http::Request& request) { return handlers->Get(request); });
    routes.Add("PUT", one,
               {"Create (201) or replace (200); the same body changes nothing. If-None-Match: * "
                "creates only, If-Match: \"resourceVersion\" "
                "(or metadata.resourceVersion in the body) replaces only that version",
                {200, 201},
                name,
                name},
               [handlers](http::Request& request) { return handlers->Put(request); });
    routes.Add("PATCH", one, {"Change parts, as JSON merge patch", {200}, name, "MergePatch"},
               [handlers](http::Request& request) { return handlers->Patch(request); });
    routes.Add("DELETE", one,
               {"Ask for deletion; 404 when it is done. With wait=gone answers 204 when it is, or "
                "202 at the timeout",
                {202, 204},
                name,
                "",
                {{"wait", "for what", "gone"}, {"timeout", "seconds, default 25", "", 60}}},
               [handlers](http::Request& request) { return handlers->Delete(request); });
  }
  // Served by the gateway, which has the slots.
  routes.Document(
      "POST", "/v1/namespaces/{namespace}/functions/{name}/invoke",
      {"Call the function with the body as its event; the answer is what the handler returned",
       {200},
       "Any",
       "Any"});
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
  routes.Add("GET", "/v1/openapi.json", {"This document", {200}, "Any"},
             [held, document](http::Request&) { return Response::Json(200, *document); });
  *document = OpenApi(routes.list());
}

std::unique_ptr<store::Subscription> WakeOnChange(store::ObjectStore& store, http::WakeHub& hub) {
  return store.Subscribe(
      [&hub](const store::Change& change) { hub.Notify(change.key.ToString()); });
}

}  // namespace sless::handlers
