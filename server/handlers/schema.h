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

/// What a schema is for: an answer has all that is not optional, an input what has no default, a
/// merge patch (RFC 7396) only what changes. Null in the last two is the default.
enum class Use { kAnswer, kInput, kPatch };

class SchemaVisitor {
 public:
  explicit SchemaVisitor(Use use) : use_(use) {}

  template <class T>
  void operator()(std::string_view name, const T&, const api::Doc& doc) {
    auto schema = Of(static_cast<const T*>(nullptr), use_);
    schema["description"] = doc.text;
    auto& text = schema["type"] == "array" ? schema["items"] : schema;
    if (!doc.values.empty()) text["enum"] = base::Split(doc.values, '|');
    if (!doc.pattern.empty()) text["pattern"] = doc.pattern;
    if (doc.min != INT64_MIN) schema["minimum"] = doc.min;
    if (doc.max != INT64_MAX) schema[MaxWord(schema["type"])] = doc.max;
    if (doc.sensitive) schema["x-sensitive"] = true;
    const bool required =
        use_ == Use::kAnswer ? !api::IsOptional<T>::value : use_ == Use::kInput && doc.required;
    if (required) schema_["required"].push_back(name);
    if (use_ != Use::kAnswer && !doc.required) AllowNull(schema);
    schema_["properties"][std::string(name)] = std::move(schema);
  }

  template <class T>
  static nlohmann::json Schema(Use use) {
    const T value{};
    SchemaVisitor visitor(use);
    T::Fields(value, visitor);
    return std::move(visitor.schema_);
  }

 private:
  static const char* MaxWord(const nlohmann::json& type) {
    return type == "string" ? "maxLength" : type == "object" ? "maxProperties" : "maximum";
  }
  static void AllowNull(nlohmann::json& schema) {
    schema["type"] = {schema["type"], "null"};
    if (schema.contains("enum")) schema["enum"].push_back(nullptr);
  }
  static nlohmann::json Of(const std::string*, Use) { return {{"type", "string"}}; }
  static nlohmann::json Of(const bool*, Use) { return {{"type", "boolean"}}; }
  static nlohmann::json Of(const int64_t*, Use) {
    return {{"type", "integer"}, {"format", "int64"}};
  }
  static nlohmann::json Of(const std::map<std::string, std::string>*, Use use) {
    nlohmann::json value{{"type", "string"}};
    if (use == Use::kPatch) AllowNull(value);
    return {{"type", "object"}, {"additionalProperties", std::move(value)}};
  }
  template <class T>
  static nlohmann::json Of(const std::vector<T>*, Use use) {
    return {{"type", "array"}, {"items", Of(static_cast<const T*>(nullptr), use)}};
  }
  template <class T>
  static nlohmann::json Of(const std::optional<T>*, Use use) {
    return Of(static_cast<const T*>(nullptr), use);
  }
  template <class T>
  static nlohmann::json Of(const T*, Use use) {
    return Schema<T>(use);
  }

  const Use use_;
  nlohmann::json schema_{{"type", "object"},
                         {"additionalProperties", false},
                         {"properties", nlohmann::json::object()}};
};

}  // namespace sless::handlers
