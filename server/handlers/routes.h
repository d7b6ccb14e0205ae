#pragma once

// Routes with their documentation: what is registered is what /v1/openapi.json tells.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/handlers/handlers.h"
#include "server/http/router.h"

namespace sless::handlers {

/// A parameter of the query: any text, one of `words`, or a whole number. What is documented is
/// what Number and Word read.
struct QueryDoc {
  std::string_view name;
  std::string_view text;
  std::string_view words = "";  ///< what is allowed, separated by '|'; "" for any text
  int64_t max = 0;              ///< above 0: a whole number from `min` to this
  int64_t min = 0;
  std::optional<int64_t> fallback = std::nullopt;  ///< the number where it is absent
};
inline constexpr QueryDoc kLimit{
    "limit", "at most so many items, fewer where they are large", "", 1000, 1, 100};
inline constexpr QueryDoc kContinue{"continue", "from the page before"};

/// The number that the request has for `doc`, else `fallback`, else doc.fallback. Error:
/// kInvalidArgument naming the parameter.
base::Result<int64_t> Number(const http::Request& request, const QueryDoc& doc,
                             std::optional<int64_t> fallback = std::nullopt);
/// The word that the request has for `doc`, "" where it is absent. Error: kInvalidArgument naming
/// the parameter.
base::Result<std::string> Word(const http::Request& request, const QueryDoc& doc);

struct HeaderDoc {
  std::string_view name;
  std::string_view text;
  std::string_view pattern = "";
};

/// What requests and routes do that can go wrong.
enum class Does {
  kAnswer,      ///< every route
  kCheckToken,  ///< every route but the public ones
  kReadStore,
  kFindByName,
  kWrite,
  kHeedConditions,  ///< If-Match, If-None-Match
  kCheckBody,
  kUseFiles,
  kCallHandler,
};
struct ErrorRow {
  Does when;
  int status;
};
/// The statuses of errors of each: the reasons are in docs/errors.md. A method or path that is not
/// served is no route: 405 and 404 there.
inline constexpr std::array kErrors{
    ErrorRow{Does::kAnswer, 400},          // path, query or framing
    ErrorRow{Does::kAnswer, 408},          // a body too slow,
    ErrorRow{Does::kAnswer, 413},          // or too large, also where none is wanted
    ErrorRow{Does::kAnswer, 431},          //
    ErrorRow{Does::kAnswer, 500},          //
    ErrorRow{Does::kAnswer, 501},          // a transfer coding
    ErrorRow{Does::kAnswer, 503},          // overloaded, or the disk is full
    ErrorRow{Does::kAnswer, 505},          //
    ErrorRow{Does::kCheckToken, 401},      //
    ErrorRow{Does::kReadStore, 422},       // damaged
    ErrorRow{Does::kFindByName, 404},      //
    ErrorRow{Does::kWrite, 412},           // others wrote again and again meanwhile
    ErrorRow{Does::kHeedConditions, 409},  //
    ErrorRow{Does::kHeedConditions, 412},  //
    ErrorRow{Does::kCheckBody, 415},       // Content-Encoding, Content-Type
    ErrorRow{Does::kCheckBody, 422},       // does not fit what is there
    ErrorRow{Does::kUseFiles, 429},        // no descriptor or memory is left
    ErrorRow{Does::kCallHandler, 422},     //
    ErrorRow{Does::kCallHandler, 502},     //
    ErrorRow{Does::kCallHandler, 504},     //
};

/// For the text of a BodyDoc: clients that send curl's default type are served too.
inline constexpr const char* kAnyType = "Content-Type is not looked at";

/// The body of a request.
struct BodyDoc {
  std::string schema = "";  ///< its name, "" for bytes that are no JSON
  std::vector<std::string> types = {"application/json"};
  std::string text = "";
  bool required = true;
};

/// What OpenAPI says of a route.
struct RouteDoc {
  std::string summary;
  std::vector<int> statuses = {200};  ///< of success
  std::string schema = "";  ///< name of the answer's schema, "" if it is no JSON; 204 has no body
  std::vector<Does> does = {};  ///< beyond what every route does
  std::optional<BodyDoc> body = std::nullopt;
  std::vector<QueryDoc> query = {};
  std::vector<HeaderDoc> headers = {};         ///< of the request
  std::vector<HeaderDoc> answer_headers = {};  ///< of a success with a body
};

struct DocumentedRoute {
  std::string method;
  std::string path;
  RouteDoc doc;
  bool needs_token = true;
  size_t max_body = 0;  ///< 0: said elsewhere
};

class Routes {
 public:
  Routes(http::Router& router, const Deps& deps) : router_(router), deps_(deps) {}

  /// With a token, body at most 1 MiB. A GET serves HEAD too.
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

/// The OpenAPI 3.1 document, JSON text.
std::string OpenApi(const std::vector<DocumentedRoute>& routes);

}  // namespace sless::handlers
