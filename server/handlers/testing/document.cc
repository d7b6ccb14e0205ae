#include "server/handlers/testing/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "client/base/json.h"
#include "client/base/strings.h"

namespace sless::handlers {
namespace {

using nlohmann::json;

// Format, default and texts bind nobody.
const std::set<std::string> kKnown{
    "$ref",      "type",        "enum",          "pattern",  "minimum",    "maximum",
    "minLength", "maxLength",   "maxProperties", "required", "properties", "additionalProperties",
    "items",     "description", "format",        "default",  "x-sensitive"};

std::string TypeOf(const json& value) {
  if (value.is_number_integer()) return "integer";
  return value.type_name();  // object, array, string, boolean, null, number
}

bool Matches(const json& pattern, const std::string& text) {
  return std::regex_search(text, std::regex(pattern.get<std::string>()));
}

std::string StringProblem(const json& schema, const std::string& text) {
  if (schema.contains("pattern") && !Matches(schema["pattern"], text))
    return fmt::format("\"{}\" does not match {}", text, schema["pattern"].dump());
  if (text.size() < schema.value("minLength", size_t{0})) return "is too short";
  if (text.size() > schema.value("maxLength", SIZE_MAX)) return "is too long";
  return "";
}

// Value of a header line of a request, "" if absent.
std::string HeaderOf(const std::string& lines, std::string_view name) {
  for (const auto& line : base::Split(lines, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || base::Lower(line.substr(0, colon)) != base::Lower(name))
      continue;
    return std::string(base::Trim(line.substr(colon + 1)));
  }
  return "";
}

std::string MediaType(const std::string& content_type) {
  return content_type.substr(0, content_type.find(';'));
}

// A parameter's text as the value that its schema speaks of.
json ParameterValue(const json& schema, const std::string& text) {
  if (schema["type"] != "integer") return text;
  return base::ParseJson(text).value_or(json(text));
}

}  // namespace

Document::Document(const std::string& text)
    : root_(base::ParseJson(text).value_or(json::object())) {}

const json& Document::Resolve(const json& part) const {
  if (!part.contains("$ref")) return part;
  return root_.at(json::json_pointer(part["$ref"].get<std::string>().substr(1)));
}

std::string Document::SchemaProblem(const json& given, const json& value,
                                    const std::string& where) const {
  for (const auto& [word, unused] : given.items()) {
    if (!kKnown.contains(word)) return where + ": the test knows no " + word;
  }
  const auto& schema = Resolve(given);
  if (&schema != &given) return SchemaProblem(schema, value, where);
  if (schema.contains("enum") &&
      std::find(schema["enum"].begin(), schema["enum"].end(), value) == schema["enum"].end())
    return fmt::format("{}: {} is none of {}", where, value.dump(), schema["enum"].dump());
  if (schema.contains("type")) {
    const auto type = TypeOf(value);
    const auto& types = schema["type"];
    const bool fits = types.is_array() ? std::find(types.begin(), types.end(), type) != types.end()
                                       : types == type;
    if (!fits) return fmt::format("{}: want {}, got {}", where, types.dump(), type);
  }
  if (value.is_string()) {
    const auto problem = StringProblem(schema, value.get<std::string>());
    if (!problem.empty()) return where + ": " + problem;
  }
  if (value.is_number_integer()) {
    const auto number = value.get<int64_t>();
    if (number < schema.value("minimum", INT64_MIN) || number > schema.value("maximum", INT64_MAX))
      return fmt::format("{}: {} is out of bounds", where, number);
  }
  if (value.is_array() && schema.contains("items")) {
    for (const auto& item : value) {
      if (auto problem = SchemaProblem(schema["items"], item, where + "/*"); !problem.empty())
        return problem;
    }
  }
  if (!value.is_object()) return "";
  if (value.size() > schema.value("maxProperties", SIZE_MAX)) return where + ": too many members";
  for (const auto& name : schema.value("required", json::array())) {
    if (!value.contains(name.get<std::string>()))
      return fmt::format("{}/{} is missing", where, name.get<std::string>());
  }
  const auto properties = schema.value("properties", json::object());
  const auto others = schema.value("additionalProperties", json(true));
  for (const auto& [name, member] : value.items()) {
    const auto at = where + "/" + name;
    if (!properties.contains(name) && others == json(false)) return at + " is not documented";
    const auto& of = properties.contains(name) ? properties[name] : others;
    if (!of.is_object()) continue;
    if (auto problem = SchemaProblem(of, member, at); !problem.empty()) return problem;
  }
  return "";
}

const json* Document::Path(std::string_view path) const {
  const auto want = base::Split(path, '/');
  for (const auto& [pattern, operations] : root_.at("paths").items()) {
    const auto parts = base::Split(pattern, '/');
    const bool same = std::equal(
        parts.begin(), parts.end(), want.begin(), want.end(),
        [](const auto& part, const auto& real) { return part.starts_with("{") || part == real; });
    if (same) return &operations;
  }
  return nullptr;
}

std::string Document::BodyProblem(const Sent& sent) const {
  const auto* path = Path(sent.target.substr(0, sent.target.find('?')));
  if (path == nullptr || !path->contains(base::Lower(sent.method))) return "no such operation";
  const auto& operation = path->at(base::Lower(sent.method));
  if (!operation.contains("requestBody"))
    return sent.body.empty() ? "" : "a request body is not documented";
  const auto& body = operation["requestBody"];
  if (sent.body.empty()) return body["required"] == true ? "the request body is missing" : "";
  const auto& types = body["content"];
  const auto type = MediaType(HeaderOf(sent.headers, "Content-Type"));
  if (!type.empty() && !types.contains(type)) return "Content-Type " + type + " is not documented";
  const auto& content = type.empty() ? *types.begin() : types[type];
  if (!content.contains("schema")) return "";
  const auto value = base::ParseJson(sent.body);
  return value ? SchemaProblem(content["schema"], *value, "request") : "the request is no JSON";
}

std::string Document::AskedProblem(const json& operation, const Sent& sent) const {
  const auto question = sent.target.find('?');
  std::set<std::string> known;
  for (const auto& given : operation["parameters"]) {
    const auto& parameter = Resolve(given);
    const auto name = parameter["name"].get<std::string>();
    std::string value;
    if (parameter["in"] == "header") value = HeaderOf(sent.headers, name);
    if (parameter["in"] == "query" && question != std::string::npos) {
      for (const auto& part : base::Split(sent.target.substr(question + 1), '&')) {
        if (part.starts_with(name + "="))
          value = base::PercentDecode(part.substr(name.size() + 1)).value_or("");
      }
      known.insert(name);
    }
    if (value.empty()) continue;
    auto problem =
        SchemaProblem(parameter["schema"], ParameterValue(parameter["schema"], value), name);
    if (!problem.empty()) return problem;
  }
  for (const char* header : {"If-Match", "If-None-Match", "Content-Type"}) {
    const bool heeded =
        std::any_of(operation["parameters"].begin(), operation["parameters"].end(),
                    [&](const json& parameter) { return Resolve(parameter)["name"] == header; });
    if (!heeded && std::string_view(header) != "Content-Type" &&
        !HeaderOf(sent.headers, header).empty())
      return std::string(header) + " is not documented";
  }
  if (question == std::string::npos) return "";
  for (const auto& part : base::Split(sent.target.substr(question + 1), '&')) {
    if (!known.contains(part.substr(0, part.find('=')))) return part + " is not documented";
  }
  return "";
}

std::string Document::AnswerProblem(const json& response, const Sent& sent,
                                    const http::Answer& answer) const {
  for (const auto& [name, given] : response.at("headers").items()) {
    const auto& header = Resolve(given);
    const auto value = answer.Header(name);
    if (value.empty() && header.value("required", false)) return "no " + name;
    if (auto problem = SchemaProblem(header["schema"], value, name); !problem.empty())
      return problem;
  }
  for (const char* name : {"ETag", "Retry-After", "WWW-Authenticate", "X-Sless-Revision"}) {
    if (!answer.Header(name).empty() && !response["headers"].contains(name))
      return std::string(name) + " is not documented";
  }
  if (!response.contains("content"))
    return answer.body.empty() ? "" : "a body is not documented: " + answer.body;
  if (sent.method == "HEAD") return "an answer to HEAD has no body, but one is documented";
  const auto type = MediaType(answer.Header("Content-Type"));
  const auto content = response["content"].find(type);
  if (content == response["content"].end()) return "Content-Type " + type + " is not documented";
  if (!content->contains("schema")) return "";
  const auto value = base::ParseJson(answer.body);
  return value ? SchemaProblem((*content)["schema"], *value, "answer")
               : "the answer is no JSON: " + answer.body;
}

std::string Document::Problem(const Sent& sent, const http::Answer& answer) const {
  const auto* path = Path(sent.target.substr(0, sent.target.find('?')));
  if (path == nullptr)
    return answer.status == 404 || answer.status == 400 ? "" : "the path is not documented";
  const auto operation = path->find(base::Lower(sent.method));
  if (operation == path->end()) {
    if (answer.status != 405) return "the method is not documented";
    for (const auto& method : base::Split(answer.Header("Allow"), ',')) {
      if (!path->contains(base::Lower(base::Trim(method))))
        return "allows " + method + ", which is not documented";
    }
    return "";
  }
  const auto& responses = (*operation)["responses"];
  const auto declared = responses.find(std::to_string(answer.status));
  if (declared == responses.end()) return "the status is not documented";
  if (auto problem = AnswerProblem(Resolve(*declared), sent, answer); !problem.empty())
    return problem;
  if (answer.status >= 400) return "";
  if (auto problem = AskedProblem(*operation, sent); !problem.empty()) return problem;
  return BodyProblem(sent);
}

}  // namespace sless::handlers
