#pragma once

// Terraform's types (tfplugin6: the `type` of an attribute, and the type of a dynamic value).

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/base/result.h"

namespace sless::cty {

/// Deepest nesting of types and values that is read from outside.
inline constexpr int kMaxDepth = 64;

/// An immutable type. Copies share their content. Thread-safe as any immutable object.
class Type {
 public:
  enum class Kind : uint8_t {
    kDynamic,
    kBool,
    kNumber,
    kString,
    kList,
    kSet,
    kMap,
    kObject,
    kTuple
  };
  using Attributes = std::map<std::string, Type, std::less<>>;

  /// The dynamic type: the value says what it is.
  Type() = default;
  static Type Dynamic() { return Type(); }
  static Type Bool() { return Type(Kind::kBool); }
  static Type Number() { return Type(Kind::kNumber); }
  static Type String() { return Type(Kind::kString); }
  static Type List(Type element);
  static Type Set(Type element);
  static Type Map(Type element);
  static Type Object(Attributes attributes);
  static Type Tuple(std::vector<Type> elements);

  Kind kind() const { return kind_; }
  bool IsPrimitive() const {
    return kind_ == Kind::kBool || kind_ == Kind::kNumber || kind_ == Kind::kString;
  }
  bool IsDynamic() const { return kind_ == Kind::kDynamic; }
  bool IsCollection() const {
    return kind_ == Kind::kList || kind_ == Kind::kSet || kind_ == Kind::kMap;
  }
  bool IsObject() const { return kind_ == Kind::kObject; }
  /// Dynamic itself or somewhere inside.
  bool HasDynamic() const;

  /// Element type of a list, set or map; dynamic for every other kind.
  const Type& element() const;
  /// Attributes of an object; empty for every other kind.
  const Attributes& attributes() const;
  /// Element types of a tuple; empty for every other kind.
  const std::vector<Type>& elements() const;

  bool operator==(const Type& other) const;

  /// The JSON form of the protocol: `"string"`, `["list","string"]`, `["object",{"a":"number"}]`.
  std::string ToJson() const;
  /// Reads that form; the optional-attributes list of an object is accepted and dropped. Error:
  /// kInvalidArgument.
  static base::Result<Type> FromJson(std::string_view json);
  /// For people: "list of string", "object".
  std::string ToString() const;

 private:
  struct Node;
  explicit Type(Kind kind) : kind_(kind) {}
  Type(Kind kind, std::shared_ptr<const Node> node) : kind_(kind), node_(std::move(node)) {}

  Kind kind_ = Kind::kDynamic;
  std::shared_ptr<const Node> node_;
};

}  // namespace sless::cty
