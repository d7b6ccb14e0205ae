#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "client/api/job.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/handlers/answers.h"
#include "server/handlers/kinds.h"
#include "server/handlers/routes.h"
#include "server/handlers/schema.h"
#include "server/http/head_writer.h"
#include "server/http/path.h"

namespace sless::handlers {
namespace {

using nlohmann::json;

json Ref(std::string_view kind, std::string_view name) {
  return {{"$ref", fmt::format("#/components/{}/{}", kind, name)}};
}
json SchemaRef(std::string_view name) { return Ref("schemas", name); }

json ListOf(const json& item) {
  return {
      {"type", "object"},
      {"additionalProperties", false},
      {"required", {"items"}},
      {"properties",
       {{"items", {{"type", "array"}, {"items", item}}},
        {"continue",
         {{"type", "string"},
          {"description", "give it back as ?continue= for the next page; absent at the end"}}}}}};
}

// As api::ErrorBody writes it.
json ErrorSchema() {
  const json text{{"type", "string"}, {"minLength", 1}};
  auto codes = json::array();
  for (int code = 0; code <= static_cast<int>(base::Code::kInternal); ++code)
    codes.push_back(base::CodeName(static_cast<base::Code>(code)));
  auto schema = json{{"type", "object"},
                     {"additionalProperties", false},
                     {"required", {"code", "message"}},
                     {"properties",
                      {{"code", {{"type", "string"}, {"enum", codes}}},
                       {"message", {{"type", "string"}}},
                       {"field", text},
                       {"reason", text},
                       {"file", text},
                       {"line", {{"type", "integer"}, {"minimum", 1}}},
                       {"logTail", {{"type", "array"}, {"items", {{"type", "string"}}}}}}}};
  schema["properties"]["field"]["description"] = "JSON pointer into the object";
  schema["properties"]["reason"]["description"] = "stable word for programs";
  return schema;
}

json Schemas() {
  json schemas;
  for (const auto& kind : Kinds()) {
    const std::string name(kind.name);
    schemas[name] = kind.schema();
    schemas[name + "List"] = ListOf(SchemaRef(name));
    schemas[name + "Input"] = kind.input_schema();
    schemas[name + "Patch"] = kind.patch_schema();
  }
  auto& run = schemas["Run"] = SchemaVisitor::Schema<api::Run>(Use::kAnswer);
  run["properties"]["kind"] = {{"type", "string"}, {"enum", {api::kKindRun}}};
  run["required"].push_back("kind");
  schemas["RunList"] = ListOf(SchemaRef("Run"));
  schemas["Retry"] = SchemaVisitor::Schema<Retry>(Use::kInput);
  schemas["Code"] = SchemaVisitor::Schema<Code>(Use::kAnswer);
  schemas["Health"] = SchemaVisitor::Schema<Health>(Use::kAnswer);
  schemas["Info"] = SchemaVisitor::Schema<Info>(Use::kAnswer);
  schemas["NamespaceList"] = ListOf(SchemaVisitor::Schema<Namespace>(Use::kAnswer));
  schemas["LogList"] = ListOf(SchemaVisitor::Schema<LogLine>(Use::kAnswer));
  schemas["Any"] = {{"description", "any JSON"}};
  schemas["Error"] = ErrorSchema();
  return schemas;
}

json Content(const std::string& schema, const std::vector<std::string>& types) {
  json content;
  for (const auto& type : types) {
    content[type] = json::object();
    if (!schema.empty()) content[type]["schema"] = SchemaRef(schema);
  }
  return content;
}

json Header(const HeaderDoc& doc) {
  json schema{{"type", "string"}};
  if (!doc.pattern.empty()) schema["pattern"] = doc.pattern;
  return {{"description", doc.text}, {"schema", std::move(schema)}};
}

json AnswerHeader(const HeaderDoc& doc) {
  auto header = Header(doc);
  header["required"] = true;
  return header;
}

constexpr HeaderDoc kSentId{"X-Request-Id",
                            "id of the request, for the log: 1 to 128 of A-Z a-z 0-9 . _ -; "
                            "anything else is replaced by a new one"};
constexpr HeaderDoc kGivenId{"X-Request-Id", "id of the request", "^[-A-Za-z0-9._]{1,128}$"};

// What a header says of an error.
json ErrorHeaders(int status) {
  json headers{{std::string(kGivenId.name), Ref("headers", kGivenId.name)}};
  if (status == 401) headers["WWW-Authenticate"] = AnswerHeader({"", "", "^Bearer$"});
  if (status == 503) headers["Retry-After"] = AnswerHeader({"", "in seconds", "^[0-9]+$"});
  return headers;
}

json ErrorResponse(int status) {
  return {{"description", http::ReasonPhrase(status)}, {"headers", ErrorHeaders(status)}};
}

std::string ErrorName(int status) { return fmt::format("Error{}", status); }

json Components() {
  json components;
  components["schemas"] = Schemas();
  components["securitySchemes"]["bearer"] = {{"type", "http"}, {"scheme", "bearer"}};
  components["headers"][std::string(kGivenId.name)] = AnswerHeader(kGivenId);
  auto& parameter = components["parameters"][std::string(kSentId.name)] = Header(kSentId);
  parameter["name"] = kSentId.name;
  parameter["in"] = "header";
  for (const auto& row : kErrors) {
    auto& response = components["responses"][ErrorName(row.status)] = ErrorResponse(row.status);
    response["content"] = Content("Error", {"application/json"});
  }
  return components;
}

json QuerySchema(const QueryDoc& query) {
  if (query.max > 0) {
    json schema{
        {"type", "integer"}, {"format", "int64"}, {"minimum", query.min}, {"maximum", query.max}};
    if (query.fallback) schema["default"] = *query.fallback;
    return schema;
  }
  json schema{{"type", "string"}};
  if (!query.words.empty()) schema["enum"] = base::Split(query.words, '|');
  return schema;
}

json Parameters(const DocumentedRoute& route) {
  auto parameters = json::array({Ref("parameters", kSentId.name)});
  for (const auto segment : http::PathSegments(route.path)) {
    if (!segment.starts_with("{")) continue;
    const auto name = segment.substr(1, segment.size() - 2);
    const auto pattern = name == "hash" ? api::kContentHashPattern : api::kDnsLabelPattern;
    parameters.push_back({{"name", name},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}, {"pattern", pattern}}}});
  }
  for (const auto& query : route.doc.query) {
    parameters.push_back({{"name", query.name},
                          {"in", "query"},
                          {"description", query.text},
                          {"schema", QuerySchema(query)}});
  }
  for (const auto& header : route.doc.headers) {
    auto parameter = Header(header);
    parameter["name"] = header.name;
    parameter["in"] = "header";
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

std::set<int> ErrorStatuses(const DocumentedRoute& route) {
  auto does = route.doc.does;
  does.push_back(Does::kAnswer);
  if (route.needs_token) does.push_back(Does::kCheckToken);
  std::set<int> statuses;
  for (const auto& row : kErrors) {
    if (std::find(does.begin(), does.end(), row.when) != does.end()) statuses.insert(row.status);
  }
  return statuses;
}

json Success(const RouteDoc& doc, int status, bool head) {
  json response{{"description", http::ReasonPhrase(status)},
                {"headers", {{std::string(kGivenId.name), Ref("headers", kGivenId.name)}}}};
  if (status == 204) return response;
  for (const auto& header : doc.answer_headers)
    response["headers"][std::string(header.name)] = AnswerHeader(header);
  if (head) return response;
  response["content"] =
      doc.schema.empty() ? Content("", {"text/plain"}) : Content(doc.schema, {"application/json"});
  return response;
}

json RequestBody(const DocumentedRoute& route) {
  const auto& body = *route.doc.body;
  auto text = body.text;
  if (route.max_body > 0) text += fmt::format("; at most {} bytes", route.max_body);
  return {{"required", body.required},
          {"description", std::move(text)},
          {"content", Content(body.schema, body.types)}};
}

json Operation(const DocumentedRoute& route, bool head) {
  json operation{{"summary", route.doc.summary}, {"parameters", Parameters(route)}};
  auto& responses = operation["responses"];
  for (const int status : route.doc.statuses)
    responses[std::to_string(status)] = Success(route.doc, status, head);
  // An answer to HEAD has no body, so it cannot be that of the components.
  for (const int status : ErrorStatuses(route)) {
    responses[std::to_string(status)] =
        head ? ErrorResponse(status) : Ref("responses", ErrorName(status));
  }
  if (route.doc.body) operation["requestBody"] = RequestBody(route);
  operation["security"] = json::array();
  if (route.needs_token) operation["security"].push_back({{"bearer", json::array()}});
  return operation;
}

}  // namespace

std::string OpenApi(const std::vector<DocumentedRoute>& routes) {
  json document;
  document["openapi"] = "3.1.0";
  document["info"] = {{"title", "sless"}, {"version", SLESS_VERSION}};
  document["components"] = Components();
  for (const auto& route : routes) {
    auto& path = document["paths"][route.path];
    path[base::Lower(route.method)] = Operation(route, route.method == "HEAD");
    if (route.method == "GET") path["head"] = Operation(route, true);
  }
  return base::DumpJson(document);
}

}  // namespace sless::handlers
