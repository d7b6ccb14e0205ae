#pragma once

// OpenAPI schemas from the Fields() declarations. Include in .cc files only, it brings
// <nlohmann/json.hpp>.

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "client/api/object.h"
#include "client/base/strings.h"

namespace sless::handlers {

class SchemaVisitor {
 public:
  template <class T>
  void operator()(std::string_view name, const T&, const api::Doc& doc) {
    auto schema = Of(static_cast<const T*>(nullptr));
    schema["description"] = doc.text;
    if (!doc.values.empty()) schema["enum"] = Words(doc, schema);
    if (doc.min != INT64_MIN) schema["minimum"] = doc.min;
    if (doc.max != INT64_MAX) schema["maximum"] = doc.max;
    if (doc.sensitive) schema["x-sensitive"] = true;
    properties[std::string(name)] = std::move(schema);
  }

  template <class T>
  static nlohmann::json Schema() {
    const T value{};
    SchemaVisitor visitor;
    T::Fields(value, visitor);
    return {{"type", "object"},
            {"additionalProperties", false},
            {"properties", std::move(visitor.properties)}};
  }

  nlohmann::json properties = nlohmann::json::object();

 private:
  static nlohmann::json Words(const api::Doc& doc, const nlohmann::json& schema) {
    auto words = nlohmann::json::array();
    for (auto& word : base::Split(doc.values, '|')) words.push_back(word);
    // A field that is not set yet is "".
    if (schema["type"] == "string") words.push_back("");
    return words;
  }
  static nlohmann::json Of(const std::string*) { return {{"type", "string"}}; }
  static nlohmann::json Of(const bool*) { return {{"type", "boolean"}}; }
  static nlohmann::json Of(const int64_t*) { return {{"type", "integer"}, {"format", "int64"}}; }
  static nlohmann::json Of(const std::map<std::string, std::string>*) {
    return {{"type", "object"}, {"additionalProperties", {{"type", "string"}}}};
  }
  template <class T>
  static nlohmann::json Of(const std::vector<T>*) {
    return {{"type", "array"}, {"items", Of(static_cast<const T*>(nullptr))}};
  }
  template <class T>
  static nlohmann::json Of(const std::optional<T>*) {
    return Of(static_cast<const T*>(nullptr));
  }
  template <class T>
  static nlohmann::json Of(const T*) {
    return Schema<T>();
  }
};

}  // namespace sless::handlers
