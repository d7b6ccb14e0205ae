// Functions over whole values (declared in value.h).

#include <fmt/format.h>

#include "provider/cty/value.h"

namespace sless::cty {

using base::Code;
using base::Err;
using Kind = Value::Kind;

namespace {

Step MemberStep(const Value& container, const std::string& name) {
  return Step{container.kind() == Kind::kMap ? Step::Kind::kKey : Step::Kind::kAttribute, name};
}

void WalkAt(Path& path, const Value& value,
            const std::function<bool(const Path&, const Value&)>& visit) {
  if (!visit(path, value)) return;
  const bool is_set = value.kind() == Kind::kSet;
  for (size_t i = 0; i < value.AsList().size(); ++i) {
    if (!is_set) path.Push(Step{Step::Kind::kIndex, "", static_cast<int64_t>(i)});
    WalkAt(path, value.AsList()[i], visit);
    if (!is_set) path.Pop();
  }
  for (const auto& [name, part] : value.AsMap()) {
    path.Push(MemberStep(value, name));
    WalkAt(path, part, visit);
    path.Pop();
  }
}

Value Rebuild(const Value& like, Value::Elements items) {
  switch (like.kind()) {
    case Kind::kList:
      return Value::List(std::move(items));
    case Kind::kSet:
      return Value::Set(std::move(items));
    default:
      return Value::Tuple(std::move(items));
  }
}

Value KeepDynamicType(const Value& from, Value to) {
  return from.dynamic_type() != nullptr ? to.WithDynamicType(*from.dynamic_type()) : to;
}

Value TransformAt(Path& path, const Value& value,
                  const std::function<Value(const Path&, const Value&)>& change) {
  Value::Elements items;
  items.reserve(value.AsList().size());
  const bool is_set = value.kind() == Kind::kSet;
  for (size_t i = 0; i < value.AsList().size(); ++i) {
    if (!is_set) path.Push(Step{Step::Kind::kIndex, "", static_cast<int64_t>(i)});
    items.push_back(TransformAt(path, value.AsList()[i], change));
    if (!is_set) path.Pop();
  }
  Value::Members members;
  for (const auto& [name, part] : value.AsMap()) {
    path.Push(MemberStep(value, name));
    members.emplace(name, TransformAt(path, part, change));
    path.Pop();
  }
  // The parts that did not change keep their storage.
  if (items == value.AsList() && members == value.AsMap()) return change(path, value);
  Value rebuilt = value.AsMap().empty()        ? Rebuild(value, std::move(items))
                  : value.kind() == Kind::kMap ? Value::Map(std::move(members))
                                               : Value::Object(std::move(members));
  return change(path, KeepDynamicType(value, std::move(rebuilt)));
}

}  // namespace

void Walk(const Value& value, const std::function<bool(const Path&, const Value&)>& visit) {
  Path path;
  WalkAt(path, value, visit);
}

Value Transform(const Value& value, const std::function<Value(const Path&, const Value&)>& change) {
  Path path;
  return TransformAt(path, value, change);
}

Value UnknownsToNull(const Value& value) {
  if (value.IsWhollyKnown()) return value;
  return Transform(value, [](const Path&, const Value& part) {
    return part.IsUnknown() ? Value::Null() : part;
  });
}

std::vector<Path> UnknownPaths(const Value& value) {
  std::vector<Path> paths;
  Walk(value, [&](const Path& path, const Value& part) {
    if (part.IsUnknown()) paths.push_back(path);
    return !part.IsWhollyKnown();
  });
  return paths;
}

Value NullObject(const Type& type) {
  if (!type.IsObject()) return Value::Null();
  Value::Members members;
  for (const auto& [name, attribute] : type.attributes())
    members.emplace_hint(members.end(), name, Value::Null());
  return Value::Object(std::move(members));
}

Type InferType(const Value& value) {
  if (value.dynamic_type() != nullptr) return *value.dynamic_type();
  const auto common = [](const auto& parts, const auto& get) {
    std::optional<Type> type;
    for (const auto& part : parts) {
      const Type one = InferType(get(part));
      if (type && !(*type == one)) return std::optional<Type>();
      type = one;
    }
    return type ? type : std::optional<Type>(Type::Dynamic());
  };
  switch (value.kind()) {
    case Kind::kNull:
    case Kind::kUnknown:
      return Type::Dynamic();
    case Kind::kBool:
      return Type::Bool();
    case Kind::kNumber:
      return Type::Number();
    case Kind::kString:
      return Type::String();
    case Kind::kList:
    case Kind::kSet: {
      const auto type = common(value.AsList(), [](const Value& v) -> const Value& { return v; });
      // A collection of dynamic is no type for a value: hosts would need one concrete element type.
      if (type && !type->HasDynamic())
        return value.kind() == Kind::kSet ? Type::Set(*type) : Type::List(*type);
      [[fallthrough]];
    }
    case Kind::kTuple: {
      std::vector<Type> elements;
      for (const auto& part : value.AsList()) elements.push_back(InferType(part));
      return Type::Tuple(std::move(elements));
    }
    case Kind::kMap: {
      const auto type =
          common(value.AsMap(), [](const auto& m) -> const Value& { return m.second; });
      if (type && !type->HasDynamic()) return Type::Map(*type);
      [[fallthrough]];
    }
    case Kind::kObject: {
      Type::Attributes attributes;
      for (const auto& [name, part] : value.AsMap()) attributes.emplace(name, InferType(part));
      return Type::Object(std::move(attributes));
    }
  }
  return Type::Dynamic();
}

namespace {

std::string_view Found(const Value& value) {
  switch (value.kind()) {
    case Kind::kNull:
      return "null";
    case Kind::kUnknown:
      return "an unknown value";
    case Kind::kBool:
      return "a bool";
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kList:
      return "a list";
    case Kind::kSet:
      return "a set";
    case Kind::kMap:
      return "a map";
    case Kind::kObject:
      return "an object";
    case Kind::kTuple:
      return "a tuple";
  }
  return "?";
}

tl::unexpected<base::Error> Misfit(const Path& path, std::string_view problem) {
  const std::string where = path.empty() ? "value" : path.ToString();
  return Err(Code::kInternal, fmt::format("{}: {}", where, problem));
}

Kind ExpectedKind(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::kDynamic:
      return Kind::kNull;
    case Type::Kind::kBool:
      return Kind::kBool;
    case Type::Kind::kNumber:
      return Kind::kNumber;
    case Type::Kind::kString:
      return Kind::kString;
    case Type::Kind::kList:
      return Kind::kList;
    case Type::Kind::kSet:
      return Kind::kSet;
    case Type::Kind::kMap:
      return Kind::kMap;
    case Type::Kind::kObject:
      return Kind::kObject;
    case Type::Kind::kTuple:
      return Kind::kTuple;
  }
  return Kind::kNull;
}

// Inside a dynamic value (`inferred`) a list of mixed elements goes out as a tuple, a mixed map as
// an object.
bool KindFits(Kind found, Type::Kind wanted, bool inferred) {
  if (found == ExpectedKind(wanted)) return true;
  if (!inferred) return false;
  if (wanted == Type::Kind::kTuple) return found == Kind::kList || found == Kind::kSet;
  return wanted == Type::Kind::kObject && found == Kind::kMap;
}

base::Status Check(Path& path, const Value& value, const Type& type, int depth, bool inferred);

base::Status CheckPart(Path& path, Step step, const Value& value, const Type& type, int depth,
                       bool inferred) {
  path.Push(std::move(step));
  const auto status = Check(path, value, type, depth, inferred);
  path.Pop();
  return status;
}

base::Status Check(Path& path, const Value& value, const Type& type, int depth, bool inferred) {
  if (depth > kMaxDepth)
    return Misfit(path, fmt::format("nested deeper than {} levels", kMaxDepth));
  if (!value.IsKnown()) return base::Ok();
  if (type.IsDynamic()) return Check(path, value, InferType(value), depth + 1, true);
  if (!KindFits(value.kind(), type.kind(), inferred)) {
    return Misfit(path, fmt::format("wanted {}, found {}", type.ToString(), Found(value)));
  }
  const auto& items = value.AsList();
  if (type.kind() == Type::Kind::kTuple && items.size() != type.elements().size()) {
    return Misfit(
        path, fmt::format("wanted {} elements, found {}", type.elements().size(), items.size()));
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const Type& part = type.kind() == Type::Kind::kTuple ? type.elements()[i] : type.element();
    RETURN_IF_ERROR(CheckPart(path, Step{Step::Kind::kIndex, "", static_cast<int64_t>(i)}, items[i],
                              part, depth + 1, inferred));
  }
  if (type.kind() == Type::Kind::kMap) {
    for (const auto& [key, part] : value.AsMap()) {
      RETURN_IF_ERROR(
          CheckPart(path, Step{Step::Kind::kKey, key}, part, type.element(), depth + 1, inferred));
    }
  }
  if (!type.IsObject()) return base::Ok();
  for (const auto& [name, part] : value.AsMap()) {
    const auto it = type.attributes().find(name);
    if (it == type.attributes().end())
      return Misfit(path, fmt::format("there is no attribute \"{}\"", name));
    RETURN_IF_ERROR(
        CheckPart(path, Step{Step::Kind::kAttribute, name}, part, it->second, depth + 1, inferred));
  }
  if (value.AsMap().size() == type.attributes().size()) return base::Ok();
  for (const auto& [name, attribute] : type.attributes()) {
    if (!value.AsMap().contains(name))
      return Misfit(path, fmt::format("attribute \"{}\" is missing", name));
  }
  return base::Ok();
}

}  // namespace

base::Status Conforms(const Value& value, const Type& type) {
  Path path;
  return Check(path, value, type, 0, false);
}

}  // namespace sless::cty
