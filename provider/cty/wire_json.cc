#include "provider/cty/wire_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "client/base/strings.h"

namespace sless::cty {
namespace {

using base::Code;
using base::Err;
using base::Result;
using nlohmann::json;

// A JSON tree whose numbers are their text.
struct Node {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;  // kNumber, kString
  std::vector<Node> items;
  std::map<std::string, Node, std::less<>> members;
};

class TreeReader : public nlohmann::json_sax<json> {
 public:
  bool null() override { return Add({}); }
  bool boolean(bool value) override { return Add({Node::Kind::kBool, value, {}, {}, {}}); }
  bool number_integer(number_integer_t value) override { return Number(std::to_string(value)); }
  bool number_unsigned(number_unsigned_t value) override { return Number(std::to_string(value)); }
  bool number_float(number_float_t, const string_t& text) override { return Number(text); }
  bool string(string_t& value) override {
    return Add({Node::Kind::kString, false, std::move(value), {}, {}});
  }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return Open(Node::Kind::kObject); }
  bool start_array(size_t) override { return Open(Node::Kind::kArray); }
  bool key(string_t& value) override {
    keys_.back() = std::move(value);
    return true;
  }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception& e) override {
    // nlohmann gives up on numbers beyond a double (out_of_range 406) although it has their text.
    problem = e.id == 406 ? fmt::format("number out of range at byte {}", position)
                          : fmt::format("not JSON at byte {}", position);
    return false;
  }

  Node root;
  std::string problem;

 private:
  bool Number(std::string text) {
    return Add({Node::Kind::kNumber, false, std::move(text), {}, {}});
  }
  Node* Place(Node node) {
    if (open_.empty()) return &(root = std::move(node));
    Node& parent = *open_.back();
    if (parent.kind == Node::Kind::kArray) return &parent.items.emplace_back(std::move(node));
    return &parent.members.insert_or_assign(keys_.back(), std::move(node)).first->second;
  }
  bool Add(Node node) {
    Place(std::move(node));
    return true;
  }
  bool Open(Node::Kind kind) {
    if (open_.size() >= static_cast<size_t>(kMaxDepth)) {
      problem = fmt::format("nested deeper than {} levels", kMaxDepth);
      return false;
    }
    open_.push_back(Place({kind, false, {}, {}, {}}));
    keys_.emplace_back();
    return true;
  }
  bool Close() {
    open_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::vector<Node*> open_;
  std::vector<std::string> keys_;
};

Result<Node> ParseTree(std::string_view text) {
  TreeReader reader;
  bool ok = false;
  try {
    ok = json::sax_parse(text.begin(), text.end(), &reader);
  } catch (const json::exception& e) {
    reader.problem = e.what();
  }
  if (!ok) {
    return Err(Code::kInvalidArgument,
               reader.problem.empty() ? std::string("not JSON") : reader.problem);
  }
  return std::move(reader.root);
}

std::string_view KindName(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kNull:
      return "null";
    case Node::Kind::kBool:
      return "a bool";
    case Node::Kind::kNumber:
      return "a number";
    case Node::Kind::kString:
      return "a string";
    case Node::Kind::kArray:
      return "an array";
    case Node::Kind::kObject:
      return "an object";
  }
  return "?";
}

json ToJsonTree(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kArray: {
      json items = json::array();
      for (const Node& item : node.items) items.push_back(ToJsonTree(item));
      return items;
    }
    case Node::Kind::kObject: {
      json members = json::object();
      for (const auto& [key, item] : node.members) members[key] = ToJsonTree(item);
      return members;
    }
    case Node::Kind::kString:
      return node.text;
    default:
      return nullptr;
  }
}

class Converter {
 public:
  explicit Converter(JsonOptions options) : options_(options) {}

  Result<Value> Convert(const Node& node, const Type& type, int depth) {
    if (depth > kMaxDepth) return Bad(fmt::format("nested deeper than {} levels", kMaxDepth));
    if (node.kind == Node::Kind::kNull) return Value::Null();
    switch (type.kind()) {
      case Type::Kind::kDynamic:
        return Dynamic(node, depth);
      case Type::Kind::kBool:
        return Bool(node, type);
      case Type::Kind::kNumber:
        if (node.kind != Node::Kind::kNumber && node.kind != Node::Kind::kString)
          return Mismatch(node, type);
        if (auto number = Number::Parse(node.text)) return Value::Number(*number);
        return Bad(fmt::format("wanted number, found text that is none"));
      case Type::Kind::kString:
        if (node.kind == Node::Kind::kBool) return Value::String(node.boolean ? "true" : "false");
        if (node.kind != Node::Kind::kNumber && node.kind != Node::Kind::kString)
          return Mismatch(node, type);
        return Value::String(node.text);
      case Type::Kind::kList:
      case Type::Kind::kSet:
      case Type::Kind::kTuple:
        return Sequence(node, type, depth);
      case Type::Kind::kMap:
        return Map(node, type, depth);
      case Type::Kind::kObject:
        return Object(node, type, depth);
    }
    return Bad("unknown kind of type");
  }

 private:
  tl::unexpected<base::Error> Bad(std::string_view problem) const {
    const std::string where = path_.empty() ? "value" : path_.ToString();
    return Err(Code::kInvalidArgument, fmt::format("{}: {}", where, problem));
  }
  tl::unexpected<base::Error> Mismatch(const Node& node, const Type& type) const {
    return Bad(fmt::format("wanted {}, found {}", type.ToString(), KindName(node.kind)));
  }

  Result<Value> Bool(const Node& node, const Type& type) const {
    if (node.kind == Node::Kind::kBool) return Value::Bool(node.boolean);
    if (node.kind == Node::Kind::kString && (node.text == "true" || node.text == "false")) {
      return Value::Bool(node.text == "true");
    }
    return Mismatch(node, type);
  }

  Result<Value> Dynamic(const Node& node, int depth) {
    const auto type_node = node.members.find("type");
    const auto value_node = node.members.find("value");
    if (type_node == node.members.end() || value_node == node.members.end()) {
      return Bad("wanted a dynamic value as {\"type\":…,\"value\":…}");
    }
    auto type = Type::FromJson(
        ToJsonTree(type_node->second).dump(-1, ' ', false, json::error_handler_t::replace));
    if (!type) return Bad(type.error().message);
    ASSIGN_OR_RETURN(const Value value, Convert(value_node->second, *type, depth + 1));
    return value.WithDynamicType(std::move(*type));
  }

  Result<Value> Sequence(const Node& node, const Type& type, int depth) {
    if (node.kind != Node::Kind::kArray) return Mismatch(node, type);
    const bool tuple = type.kind() == Type::Kind::kTuple;
    if (tuple && node.items.size() != type.elements().size()) {
      return Bad(
          fmt::format("wanted {} elements, found {}", type.elements().size(), node.items.size()));
    }
    Value::Elements items;
    for (size_t i = 0; i < node.items.size(); ++i) {
      path_.Push(Step{Step::Kind::kIndex, "", static_cast<int64_t>(i)});
      ASSIGN_OR_RETURN(auto item, Convert(node.items[i],
                                          tuple ? type.elements()[i] : type.element(), depth + 1));
      path_.Pop();
      items.push_back(std::move(item));
    }
    if (tuple) return Value::Tuple(std::move(items));
    return type.kind() == Type::Kind::kSet ? Value::Set(std::move(items))
                                           : Value::List(std::move(items));
  }

  Result<Value> Map(const Node& node, const Type& type, int depth) {
    if (node.kind != Node::Kind::kObject) return Mismatch(node, type);
    Value::Members members;
    for (const auto& [key, item] : node.members) {
      path_.Push(Step{Step::Kind::kKey, key});
      ASSIGN_OR_RETURN(auto part, Convert(item, type.element(), depth + 1));
      path_.Pop();
      members.emplace(key, std::move(part));
    }
    return Value::Map(std::move(members));
  }

  Result<Value> Object(const Node& node, const Type& type, int depth) {
    if (node.kind != Node::Kind::kObject) return Mismatch(node, type);
    Value::Members members;
    for (const auto& [name, attribute] : type.attributes()) {
      const auto it = node.members.find(name);
      if (it == node.members.end()) {
        members.emplace(name, Value::Null());
        continue;
      }
      path_.Push(Step{Step::Kind::kAttribute, name});
      ASSIGN_OR_RETURN(auto part, Convert(it->second, attribute, depth + 1));
      path_.Pop();
      members.emplace(name, std::move(part));
    }
    if (!options_.ignore_extra_attributes) {
      for (const auto& [name, item] : node.members) {
        if (!type.attributes().contains(name))
          return Bad(fmt::format("there is no attribute \"{}\"", name));
      }
    }
    return Value::Object(std::move(members));
  }

  JsonOptions options_;
  Path path_;
};

Result<Value> AnyValue(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return Value::Null();
    case Node::Kind::kBool:
      return Value::Bool(node.boolean);
    case Node::Kind::kNumber: {
      ASSIGN_OR_RETURN(const auto number, Number::Parse(node.text));
      return Value::Number(number);
    }
    case Node::Kind::kString:
      return Value::String(node.text);
    case Node::Kind::kArray: {
      Value::Elements items;
      for (const Node& item : node.items) {
        ASSIGN_OR_RETURN(auto part, AnyValue(item));
        items.push_back(std::move(part));
      }
      return Value::Tuple(std::move(items));
    }
    case Node::Kind::kObject:
      break;
  }
  Value::Members members;
  for (const auto& [key, item] : node.members) {
    ASSIGN_OR_RETURN(auto part, AnyValue(item));
    members.emplace(key, std::move(part));
  }
  return Value::Object(std::move(members));
}

void WriteString(std::string& out, const std::string& text) {
  out += json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

void Write(std::string& out, const Value& value, const Type& type) {
  if (value.IsNull() && value.dynamic_type() == nullptr) {
    out += "null";
    return;
  }
  if (type.IsDynamic()) {
    const Type inferred = InferType(value);
    out += "{\"value\":";
    if (inferred.IsDynamic()) {
      out += "null";
    } else {
      Write(out, value, inferred);
    }
    out += ",\"type\":" + inferred.ToJson() + "}";
    return;
  }
  switch (value.kind()) {
    case Value::Kind::kNull:
    case Value::Kind::kUnknown:
      out += "null";
      return;
    case Value::Kind::kBool:
      out += value.AsBool() ? "true" : "false";
      return;
    case Value::Kind::kNumber:
      out += value.AsNumber().ToString();
      return;
    case Value::Kind::kString:
      return WriteString(out, value.AsString());
    case Value::Kind::kList:
    case Value::Kind::kSet:
    case Value::Kind::kTuple:
      out += '[';
      for (size_t i = 0; i < value.AsList().size(); ++i) {
        if (i != 0) out += ',';
        Write(out, value.AsList()[i],
              type.kind() == Type::Kind::kTuple ? type.elements()[i] : type.element());
      }
      out += ']';
      return;
    case Value::Kind::kMap:
    case Value::Kind::kObject:
      break;
  }
  out += '{';
  bool first = true;
  for (const auto& [name, part] : value.AsMap()) {
    if (!first) out += ',';
    first = false;
    WriteString(out, name);
    out += ':';
    Write(out, part, type.IsObject() ? type.attributes().find(name)->second : type.element());
  }
  out += '}';
}

}  // namespace

Result<Value> DecodeJson(std::string_view text, const Type& type, JsonOptions options) {
  ASSIGN_OR_RETURN(const Node root, ParseTree(text));
  return Converter(options).Convert(root, type, 0);
}

Result<Value> DecodeAnyJson(std::string_view text) {
  ASSIGN_OR_RETURN(const Node root, ParseTree(text));
  return AnyValue(root);
}

Result<std::string> EncodeJson(const Value& value, const Type& type) {
  RETURN_IF_ERROR(Conforms(value, type));
  if (!value.IsWhollyKnown()) {
    const auto paths = UnknownPaths(value);
    return Err(Code::kInternal,
               fmt::format("{}: an unknown value has no JSON form",
                           paths.empty() || paths[0].empty() ? "value" : paths[0].ToString()));
  }
  std::string out;
  Write(out, value, type);
  return out;
}

}  // namespace sless::cty
