#pragma once

// Terraform's values: null, unknown ("known after apply") or known.

#include <compare>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "provider/cty/number.h"
#include "provider/cty/path.h"
#include "provider/cty/type.h"

namespace sless::cty {

/// An immutable value. Copies are cheap (shared content). Null and unknown carry no type, except a
/// type given by WithDynamicType. Thread-safe as any immutable object.
class Value {
 public:
  enum class Kind : uint8_t {
    kNull,
    kUnknown,
    kBool,
    kNumber,
    kString,
    kList,
    kSet,
    kMap,
    kObject,
    kTuple
  };
  using Elements = std::vector<Value>;
  using Members = std::map<std::string, Value, std::less<>>;

  /// Null.
  Value() = default;
  static Value Null() { return Value(); }
  static Value Unknown() { return Value(Kind::kUnknown, 0); }
  static Value Bool(bool value) { return Value(Kind::kBool, value ? 1 : 0); }
  static Value Int(int64_t value) { return Value(Kind::kNumber, value); }
  static Value Number(const cty::Number& value);
  static Value String(std::string_view value);
  static Value List(Elements elements);
  /// Sorts the elements and drops equal ones (those with an unknown part are all kept).
  static Value Set(Elements elements);
  static Value Tuple(Elements elements);
  static Value Map(Members elements);
  static Value Object(Members attributes);
  /// A list of strings, and so on.
  static Value StringList(const std::vector<std::string>& elements);
  static Value StringSet(const std::vector<std::string>& elements);
  static Value StringMap(const std::map<std::string, std::string>& elements);

  Kind kind() const { return kind_; }
  bool IsNull() const { return kind_ == Kind::kNull; }
  bool IsUnknown() const { return kind_ == Kind::kUnknown; }
  /// Neither null nor unknown itself; parts may be.
  bool IsKnown() const { return kind_ > Kind::kUnknown; }
  /// No unknown anywhere inside.
  bool IsWhollyKnown() const;

  /// Content. Asking for another kind gives false, 0, "" or the empty container.
  bool AsBool() const { return kind_ == Kind::kBool && scalar_ != 0; }
  cty::Number AsNumber() const;
  const std::string& AsString() const;
  /// Elements of a list, set or tuple.
  const Elements& AsList() const;
  /// Elements of a map, attributes of an object.
  const Members& AsMap() const;
  /// Number of elements of a container, else 0.
  size_t size() const { return AsList().size() + AsMap().size(); }

  /// The attribute or map element of this name; null where there is none.
  const Value& Get(std::string_view name) const;
  /// What lies at `path`; nothing if a step does not exist, or lies inside a null, an unknown or a
  /// set.
  std::optional<Value> At(const Path& path) const;

  /// A copy with one attribute or element set. For kMap and kObject only; any other value is
  /// returned unchanged.
  Value With(std::string_view name, Value value) const;
  /// A copy with the value at `path` replaced; unchanged if the path does not exist (see At) save
  /// for its last step in a map or object.
  Value WithAt(const Path& path, const Value& value) const;

  /// The concrete type of a value in a dynamic position, if it was given.
  const Type* dynamic_type() const;
  Value WithDynamicType(Type type) const;

  /// Equal by value: sets without order, numbers exactly, unknown equals unknown, dynamic types not
  /// compared.
  bool operator==(const Value& other) const { return Compare(other) == 0; }
  /// A total order that agrees with ==.
  std::strong_ordering Compare(const Value& other) const;

  /// For people and test output: `{name="x", n=1, id=(unknown)}`. It shows everything: never for
  /// sensitive values.
  std::string ToString() const;

 private:
  struct Payload;
  Value(Kind kind, int64_t scalar) : kind_(kind), scalar_(scalar) {}
  Value(Kind kind, std::shared_ptr<const Payload> payload)
      : kind_(kind), payload_(std::move(payload)) {}
  void Print(std::string& out) const;

  Kind kind_ = Kind::kNull;
  int64_t scalar_ = 0;  // kBool, kNumber without payload
  std::shared_ptr<const Payload> payload_;
};

/// Calls `visit(path, value)` for the value and everything inside, parents first; where it returns
/// false, not for the parts. Elements of a set have the path of the set.
void Walk(const Value& value, const std::function<bool(const Path&, const Value&)>& visit);
/// A copy in which every part, children first, is replaced by `change(path, part)`.
Value Transform(const Value& value, const std::function<Value(const Path&, const Value&)>& change);
/// A copy with null in place of every unknown.
Value UnknownsToNull(const Value& value);
/// Paths of the unknown parts, in order.
std::vector<Path> UnknownPaths(const Value& value);

/// An object of `type` with every attribute null. For any other type: null.
Value NullObject(const Type& type);
/// OK if `value` can be written as `type`: every attribute there and none more, kinds right, tuple
/// lengths right. Error: kInternal, the message begins with the path.
base::Status Conforms(const Value& value, const Type& type);
/// The narrowest type of a known value, for dynamic positions. Lists become tuples, maps objects,
/// unless all elements have one type.
Type InferType(const Value& value);

}  // namespace sless::cty
