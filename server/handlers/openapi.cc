#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "client/api/job.h"
#include "client/base/json.h"
#include "client/base/strings.h"
#include "server/handlers/kinds.h"
#include "server/handlers/routes.h"
#include "server/handlers/schema.h"
#include "server/http/head_writer.h"
#include "server/http/path.h"

namespace sless::handlers {
namespace {

using nlohmann::json;

json Ref(const std::string& name) { return {{"$ref", "#/components/schemas/" + name}}; }

json Object(std::initializer_list<std::pair<std::string, json>> properties) {
  json schema{{"type", "object"}, {"properties", json::object()}};
  for (const auto& [name, value] : properties) schema["properties"][name] = value;
  return schema;
}

json ListOf(const json& item) {
  return Object(
      {{"items", {{"type", "array"}, {"items", item}}},
       {"continue",
        {{"type", "string"},
         {"description", "give it back as ?continue= for the next page; absent at the end"}}}});
}

json Schemas() {
  const json text{{"type", "string"}};
  const json number{{"type", "integer"}};
  const json words{{"type", "array"}, {"items", text}};
  json schemas;
  for (const auto& kind : Kinds()) {
    const std::string name(kind.name);
    schemas[name] = kind.schema();
    schemas[name + "List"] = ListOf(Ref(name));
  }
  schemas["Run"] = SchemaVisitor::Schema<api::Run>();
  schemas["Run"]["properties"]["kind"] = text;
  schemas["RunList"] = ListOf(Ref("Run"));
  const json positive{{"type", "integer"}, {"minimum", 1}};
  schemas["Retry"] = Object({{"runId", positive}, {"attempt", positive}});
  schemas["Retry"]["required"] = {"runId", "attempt"};
  schemas["Code"] = Object({{"hash", text}});
  schemas["Health"] = Object({{"status", text}});
  schemas["Info"] = Object({{"version", text}, {"externalUrl", text}, {"runtimes", words}});
  schemas["NamespaceList"] = ListOf(Object({{"name", text}}));
  schemas["LogList"] = ListOf(Object({{"time", text},
                                      {"revision", number},
                                      {"replica", text},
                                      {"stream", text},
                                      {"requestId", text},
                                      {"line", text}}));
  schemas["MergePatch"] =
      Object({{"metadata", {{"type", "object"}}}, {"spec", {{"type", "object"}}}});
  schemas["MergePatch"]["additionalProperties"] = false;
  schemas["MergePatch"]["description"] = "RFC 7396, on spec and metadata.annotations";
  schemas["Any"] = json::object();
  schemas["Error"] = Object({{"code", text},
                             {"message", text},
                             {"field", text},
                             {"reason", text},
                             {"file", text},
                             {"line", number},
                             {"logTail", words}});
  return schemas;
}

json Content(const std::string& schema, std::string_view type = "application/json") {
  json content;
  content[std::string(type)]["schema"] = Ref(schema);
  return content;
}

json PathSchema(std::string_view name) {
  json schema{{"type", "string"}};
  if (name == "hash") {
    schema["pattern"] = "^sha256:[0-9a-f]{64}$";
  } else {  // names are DNS labels
    schema["pattern"] = "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$";
    schema["maxLength"] = 63;
  }
  return schema;
}

json QuerySchema(const QueryDoc& query) {
  if (query.max > 0) return {{"type", "integer"}, {"minimum", query.min}, {"maximum", query.max}};
  json schema{{"type", "string"}};
  if (!query.words.empty()) schema["enum"] = base::Split(query.words, '|');
  return schema;
}

json Parameters(const DocumentedRoute& route) {
  auto parameters = json::array();
  for (const auto segment : http::PathSegments(route.path)) {
    if (!segment.starts_with("{")) continue;
    const auto name = segment.substr(1, segment.size() - 2);
    parameters.push_back(
        {{"name", name}, {"in", "path"}, {"required", true}, {"schema", PathSchema(name)}});
  }
  for (const auto& query : route.doc.query) {
    parameters.push_back({{"name", query.name},
                          {"in", "query"},
                          {"description", query.text},
                          {"schema", QuerySchema(query)}});
  }
  return parameters;
}

json Operation(const DocumentedRoute& route) {
  json operation{{"summary", route.doc.summary}, {"parameters", Parameters(route)}};
  auto& responses = operation["responses"];
  for (const int status : route.doc.statuses) {
    json success{{"description", http::ReasonPhrase(status)}};
    if (!route.doc.schema.empty() && status != 204) success["content"] = Content(route.doc.schema);
    responses[std::to_string(status)] = std::move(success);
  }
  responses["default"] = {{"description", "an error"}, {"content", Content("Error")}};
  if (!route.doc.body_schema.empty()) {
    const auto type =
        route.doc.body_schema == "MergePatch" ? "application/merge-patch+json" : "application/json";
    operation["requestBody"] = {{"required", true},
                                {"content", Content(route.doc.body_schema, type)}};
  }
  operation["security"] = json::array();
  if (route.needs_token) operation["security"].push_back({{"bearer", json::array()}});
  return operation;
}

}  // namespace

std::string OpenApi(const std::vector<DocumentedRoute>& routes) {
  json document;
  document["openapi"] = "3.0.3";
  document["info"] = {{"title", "sless"}, {"version", SLESS_VERSION}};
  document["components"]["schemas"] = Schemas();
  document["components"]["securitySchemes"]["bearer"] = {{"type", "http"}, {"scheme", "bearer"}};
  for (const auto& route : routes) {
    document["paths"][route.path][base::Lower(route.method)] = Operation(route);
  }
  return base::DumpJson(document);
}

}  // namespace sless::handlers
