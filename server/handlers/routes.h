#pragma once

// Routes with their documentation: what is registered is what /v1/openapi.json tells.

#include <string>
#include <string_view>
#include <vector>

#include "server/handlers/handlers.h"
#include "server/http/router.h"

namespace sless::handlers {

/// What OpenAPI says of a route.
struct QueryDoc {
  std::string name;
  std::string text;
  std::string words = "";  ///< what is allowed, separated by '|'; "" for any text
  int64_t max = 0;         ///< above 0: a whole number from `min` to this
  int64_t min = 0;
};

struct RouteDoc {
  std::string summary;
  std::vector<int> statuses = {200};  ///< of success
  std::string schema;  ///< name of the answer's schema, "" if it has no JSON body; 204 has none
  std::string body_schema;  ///< of the request, "" if none
  std::vector<QueryDoc> query;
};

struct DocumentedRoute {
  std::string method;
  std::string path;
  RouteDoc doc;
  bool needs_token = true;
};

class Routes {
 public:
  Routes(http::Router& router, const Deps& deps) : router_(router), deps_(deps) {}

  /// With a token, body at most 1 MiB.
  void Add(std::string method, std::string path, RouteDoc doc, http::Handler handler);
  void AddUpload(std::string method, std::string path, RouteDoc doc, size_t max_body,
                 http::UploadHandler handler);
  /// Without a token.
  void AddPublic(std::string method, std::string path, RouteDoc doc, http::Handler handler);
  /// Without a token and without a worker, so that it answers under any load: `answer` must not
  /// block.
  void AddProbe(std::string path, RouteDoc doc, std::function<http::Response()> answer);
  /// Documents a route that another room serves.
  void Document(std::string method, std::string path, RouteDoc doc) {
    list_.push_back({std::move(method), std::move(path), std::move(doc), true});
  }

  const Deps& deps() const { return deps_; }
  const std::vector<DocumentedRoute>& list() const { return list_; }

 private:
  http::RouteOptions Guarded() const;
  http::Router& router_;
  const Deps& deps_;
  std::vector<DocumentedRoute> list_;
};

// One per file of this room.
void AddObjectRoutes(Routes& routes);
void AddCodeRoutes(Routes& routes);
void AddRunRoutes(Routes& routes);
void AddLogRoutes(Routes& routes);
void AddServerRoutes(Routes& routes);

/// The OpenAPI 3.0 document, JSON text.
std::string OpenApi(const std::vector<DocumentedRoute>& routes);

}  // namespace sless::handlers
