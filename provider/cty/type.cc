#include "provider/cty/type.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "client/base/json.h"

namespace sless::cty {

using base::Code;
using base::Err;
using base::Result;
using nlohmann::json;

struct Type::Node {
  std::vector<Type> elements;  // kList, kSet, kMap: one; kTuple: all
  Attributes attributes;
  bool has_dynamic = false;
};

Type Type::List(Type element) {
  const bool dynamic = element.HasDynamic();
  return Type(Kind::kList, std::make_shared<Node>(Node{{std::move(element)}, {}, dynamic}));
}
Type Type::Set(Type element) {
  const bool dynamic = element.HasDynamic();
  return Type(Kind::kSet, std::make_shared<Node>(Node{{std::move(element)}, {}, dynamic}));
}
Type Type::Map(Type element) {
  const bool dynamic = element.HasDynamic();
  return Type(Kind::kMap, std::make_shared<Node>(Node{{std::move(element)}, {}, dynamic}));
}
Type Type::Object(Attributes attributes) {
  bool dynamic = false;
  for (const auto& [name, type] : attributes) dynamic = dynamic || type.HasDynamic();
  return Type(Kind::kObject, std::make_shared<Node>(Node{{}, std::move(attributes), dynamic}));
}
Type Type::Tuple(std::vector<Type> elements) {
  bool dynamic = false;
  for (const auto& type : elements) dynamic = dynamic || type.HasDynamic();
  return Type(Kind::kTuple, std::make_shared<Node>(Node{std::move(elements), {}, dynamic}));
}

bool Type::HasDynamic() const { return IsDynamic() || (node_ && node_->has_dynamic); }

const Type& Type::element() const {
  static const Type kDynamic;
  return IsCollection() ? node_->elements.front() : kDynamic;
}
const Type::Attributes& Type::attributes() const {
  static const Attributes kNone;
  return IsObject() ? node_->attributes : kNone;
}
const std::vector<Type>& Type::elements() const {
  static const std::vector<Type> kNone;
  return kind_ == Kind::kTuple ? node_->elements : kNone;
}

bool Type::operator==(const Type& other) const {
  if (kind_ != other.kind_) return false;
  if (node_ == other.node_) return true;
  return node_->elements == other.node_->elements && node_->attributes == other.node_->attributes;
}

namespace {

std::string_view KindName(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::kDynamic:
      return "dynamic";
    case Type::Kind::kBool:
      return "bool";
    case Type::Kind::kNumber:
      return "number";
    case Type::Kind::kString:
      return "string";
    case Type::Kind::kList:
      return "list";
    case Type::Kind::kSet:
      return "set";
    case Type::Kind::kMap:
      return "map";
    case Type::Kind::kObject:
      return "object";
    case Type::Kind::kTuple:
      return "tuple";
  }
  return "?";
}

json ToTree(const Type& type) {
  const std::string name(KindName(type.kind()));
  switch (type.kind()) {
    case Type::Kind::kList:
    case Type::Kind::kSet:
    case Type::Kind::kMap:
      return json::array({name, ToTree(type.element())});
    case Type::Kind::kObject: {
      json attributes = json::object();
      for (const auto& [key, item] : type.attributes()) attributes[key] = ToTree(item);
      return json::array({name, attributes});
    }
    case Type::Kind::kTuple: {
      json elements = json::array();
      for (const auto& item : type.elements()) elements.push_back(ToTree(item));
      return json::array({name, elements});
    }
    default:
      return name;
  }
}

tl::unexpected<base::Error> Bad(const json& tree) {
  return Err(Code::kInvalidArgument,
             fmt::format("not a type in JSON form: {}", base::DumpJson(tree).substr(0, 100)));
}

Result<Type> FromTree(const json& tree, int depth) {
  if (depth > kMaxDepth) {
    return Err(Code::kInvalidArgument, fmt::format("type nested deeper than {} levels", kMaxDepth));
  }
  if (tree.is_string()) {
    const auto& name = tree.get_ref<const std::string&>();
    if (name == "string") return Type::String();
    if (name == "number") return Type::Number();
    if (name == "bool") return Type::Bool();
    if (name == "dynamic") return Type::Dynamic();
    return Bad(tree);
  }
  if (!tree.is_array() || tree.size() < 2 || !tree[0].is_string()) return Bad(tree);
  const auto& name = tree[0].get_ref<const std::string&>();
  if (name == "object") {
    if (!tree[1].is_object() || tree.size() > 3 || (tree.size() == 3 && !tree[2].is_array()))
      return Bad(tree);
    Type::Attributes attributes;
    for (const auto& [key, item] : tree[1].items()) {
      ASSIGN_OR_RETURN(auto type, FromTree(item, depth + 1));
      attributes.emplace(key, std::move(type));
    }
    return Type::Object(std::move(attributes));
  }
  if (tree.size() != 2) return Bad(tree);
  if (name == "tuple") {
    if (!tree[1].is_array()) return Bad(tree);
    std::vector<Type> elements;
    for (const auto& item : tree[1]) {
      ASSIGN_OR_RETURN(auto type, FromTree(item, depth + 1));
      elements.push_back(std::move(type));
    }
    return Type::Tuple(std::move(elements));
  }
  if (name != "list" && name != "set" && name != "map") return Bad(tree);
  ASSIGN_OR_RETURN(auto element, FromTree(tree[1], depth + 1));
  if (name == "list") return Type::List(std::move(element));
  if (name == "set") return Type::Set(std::move(element));
  return Type::Map(std::move(element));
}

}  // namespace

std::string Type::ToJson() const { return base::DumpJson(ToTree(*this)); }

Result<Type> Type::FromJson(std::string_view text) {
  ASSIGN_OR_RETURN(const auto tree, base::ParseJson(text));
  return FromTree(tree, 0);
}

std::string Type::ToString() const {
  if (IsCollection()) return fmt::format("{} of {}", KindName(kind_), element().ToString());
  return std::string(KindName(kind_));
}

}  // namespace sless::cty
