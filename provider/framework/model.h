#pragma once

// Typed access to whole values: a struct lists its fields once, reading and writing use the list.
//
//   struct Model {
//     Attr<std::string> name;
//     Attr<int64_t> memory_mb;
//     Attr<std::map<std::string, std::string>> environment;
//     Attr<Http> http;                                        // a struct with Fields: nested
//     attributes or a block template <class Self, class Visitor> static void Fields(Self& self,
//     Visitor& visit) {
//       visit("name", self.name);
//       …
//     }
//   };
//   ASSIGN_OR_RETURN(auto model, FromValue<Model>(request.plan));
//   model.memory_mb = 256;
//   ASSIGN_OR_RETURN(response.state, ToValue(model, type));
//
// Field types: Attr<T> with T one of std::string, int64_t, bool, double, cty::Value, std::vector<E>
// (list or set), std::map<std::string, E>, a struct with Fields; E may again be Attr<E>. A field
// without Attr must be known and not null. A collection whose elements are not Attr counts as
// unknown where any part of it is unknown. What was read and not assigned to is written back
// unchanged, unknown parts included.

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "provider/cty/value.h"

namespace sless::framework {

/// Thrown by Attr::Get for a value that is not known: a bug of the resource, which the engine
/// reports as one.
class NotKnown : public std::logic_error {
 public:
  explicit NotKnown(bool unknown)
      : std::logic_error(unknown ? "an unknown attribute was read as if it were known"
                                 : "a null attribute was read as if it were set") {}
};

/// A value in three states: null, unknown, known.
template <class T>
class Attr {
 public:
  using Content = T;
  /// Null.
  Attr() = default;
  /// Known.
  Attr(T value)
      : state_(State::kKnown), value_(std::move(value)) {}  // NOLINT: conversion is the point
  /// Known, from what T is made of (a string literal, an int).
  template <class U>
  requires(!std::is_same_v<std::remove_cvref_t<U>, Attr> &&
           !std::is_same_v<std::remove_cvref_t<U>, T> && std::is_convertible_v<U&&, T>)
      Attr(U&& value)
      : Attr(T(std::forward<U>(value))) {}  // NOLINT
  static Attr Null() { return Attr(); }
  static Attr Unknown() {
    Attr result;
    result.state_ = State::kUnknown;
    return result;
  }
  /// As read from `raw`, which is written back as it is.
  static Attr Read(Attr content, cty::Value raw) {
    content.raw_ = std::move(raw);
    content.has_raw_ = true;
    return content;
  }

  bool IsNull() const { return state_ == State::kNull; }
  bool IsUnknown() const { return state_ == State::kUnknown; }
  bool IsKnown() const { return state_ == State::kKnown; }

  /// The value. Throws NotKnown where it is null or unknown: ask IsKnown first.
  const T& Get() const {
    if (!IsKnown()) throw NotKnown(IsUnknown());
    return value_;
  }
  const T& operator*() const { return Get(); }
  const T* operator->() const { return &Get(); }
  /// The value, `fallback` where it is null. Throws NotKnown where it is unknown.
  T GetOr(T fallback) const { return IsNull() ? std::move(fallback) : Get(); }
  /// The value where it is known, else nullptr.
  const T* IfKnown() const { return IsKnown() ? &value_ : nullptr; }

  /// The value that was read, nullptr for one that was assigned.
  const cty::Value* raw() const { return has_raw_ ? &raw_ : nullptr; }

  /// Equal states and equal values.
  bool operator==(const Attr& other) const {
    return state_ == other.state_ && (state_ != State::kKnown || value_ == other.value_);
  }

 private:
  enum class State : uint8_t { kNull, kUnknown, kKnown };
  State state_ = State::kNull;
  bool has_raw_ = false;
  T value_{};
  cty::Value raw_;
};

namespace model_internal {

struct AnyVisitor {
  template <class T>
  void operator()(std::string_view, T&) {}
};
template <class T>
concept HasFields = requires(T& object, AnyVisitor& visitor) {
  T::Fields(object, visitor);
};

base::Result<std::string> ReadString(const cty::Value& value);
base::Result<int64_t> ReadInt(const cty::Value& value);
base::Result<bool> ReadBool(const cty::Value& value);
base::Result<double> ReadDouble(const cty::Value& value);
base::Result<cty::Value> WriteDouble(double value);
/// The error with `step` put before the path at the head of its message.
base::Error At(base::Error error, std::string_view step);
base::Error WrongKind(std::string_view wanted, const cty::Value& found);
base::Error NoSuchAttribute(std::string_view name);
/// Error if `type` has an attribute that `written` lacks.
base::Status CheckAllWritten(const cty::Type& type, const cty::Value::Members& written);
cty::Value MakeSequence(const cty::Type& type, cty::Value::Elements elements);

/// Reads T from a value and writes it; kSeesUnknown: T itself can express unknown parts.
template <class T>
struct Codec;

#define SLESS_SCALAR_CODEC(T, READ, WRITE)                                                   \
  template <>                                                                                \
  struct Codec<T> {                                                                          \
    static constexpr bool kSeesUnknown = false;                                              \
    static base::Result<T> Read(const cty::Value& v) { return READ(v); }                     \
    static base::Result<cty::Value> Write(const T& v, const cty::Type&) { return WRITE(v); } \
  }
SLESS_SCALAR_CODEC(std::string, ReadString, cty::Value::String);
SLESS_SCALAR_CODEC(int64_t, ReadInt, cty::Value::Int);
SLESS_SCALAR_CODEC(bool, ReadBool, cty::Value::Bool);
SLESS_SCALAR_CODEC(double, ReadDouble, WriteDouble);
#undef SLESS_SCALAR_CODEC

template <>
struct Codec<cty::Value> {
  static constexpr bool kSeesUnknown = true;
  static base::Result<cty::Value> Read(const cty::Value& v) { return v; }
  static base::Result<cty::Value> Write(const cty::Value& v, const cty::Type&) { return v; }
};

template <class T>
struct Codec<Attr<T>> {
  static constexpr bool kSeesUnknown = true;
  static base::Result<Attr<T>> Read(const cty::Value& v) {
    if (v.IsNull()) return Attr<T>::Read(Attr<T>::Null(), v);
    if (v.IsUnknown() || (!Codec<T>::kSeesUnknown && !v.IsWhollyKnown())) {
      return Attr<T>::Read(Attr<T>::Unknown(), v);
    }
    auto content = Codec<T>::Read(v);
    if (!content) return base::Err(std::move(content).error());
    return Attr<T>::Read(Attr<T>(std::move(*content)), v);
  }
  static base::Result<cty::Value> Write(const Attr<T>& v, const cty::Type& type) {
    if (v.raw() != nullptr) return *v.raw();
    if (v.IsNull()) return cty::Value::Null();
    if (v.IsUnknown()) return cty::Value::Unknown();
    return Codec<T>::Write(v.Get(), type);
  }
};

template <class E>
struct Codec<std::vector<E>> {
  static constexpr bool kSeesUnknown = Codec<E>::kSeesUnknown;
  static base::Result<std::vector<E>> Read(const cty::Value& v) {
    if (v.kind() != cty::Value::Kind::kList && v.kind() != cty::Value::Kind::kSet &&
        v.kind() != cty::Value::Kind::kTuple) {
      return base::Err(WrongKind("a list", v));
    }
    std::vector<E> result;
    result.reserve(v.AsList().size());
    for (const auto& item : v.AsList()) {
      auto element = Codec<E>::Read(item);
      if (!element)
        return base::Err(At(element.error(), "[" + std::to_string(result.size()) + "]"));
      result.push_back(std::move(*element));
    }
    return result;
  }
  static base::Result<cty::Value> Write(const std::vector<E>& v, const cty::Type& type) {
    cty::Value::Elements elements;
    elements.reserve(v.size());
    for (const auto& item : v) {
      auto element = Codec<E>::Write(item, type.element());
      if (!element)
        return base::Err(At(element.error(), "[" + std::to_string(elements.size()) + "]"));
      elements.push_back(std::move(*element));
    }
    return MakeSequence(type, std::move(elements));
  }
};

template <class E>
struct Codec<std::map<std::string, E>> {
  static constexpr bool kSeesUnknown = Codec<E>::kSeesUnknown;
  static base::Result<std::map<std::string, E>> Read(const cty::Value& v) {
    if (v.kind() != cty::Value::Kind::kMap && v.kind() != cty::Value::Kind::kObject) {
      return base::Err(WrongKind("a map", v));
    }
    std::map<std::string, E> result;
    for (const auto& [key, item] : v.AsMap()) {
      auto element = Codec<E>::Read(item);
      if (!element) return base::Err(At(element.error(), "[\"" + key + "\"]"));
      result.emplace(key, std::move(*element));
    }
    return result;
  }
  static base::Result<cty::Value> Write(const std::map<std::string, E>& v, const cty::Type& type) {
    cty::Value::Members members;
    for (const auto& [key, item] : v) {
      auto element = Codec<E>::Write(item, type.element());
      if (!element) return base::Err(At(element.error(), "[\"" + key + "\"]"));
      members.emplace(key, std::move(*element));
    }
    return cty::Value::Map(std::move(members));
  }
};

struct ReadVisitor {
  const cty::Value& object;
  base::Status status;
  template <class T>
  void operator()(std::string_view name, T& field) {
    if (!status) return;
    if (object.AsMap().find(name) == object.AsMap().end()) {
      status = base::Err(NoSuchAttribute(name));
      return;
    }
    auto value = Codec<T>::Read(object.Get(name));
    if (value) {
      field = std::move(*value);
    } else {
      status = base::Err(At(value.error(), name));
    }
  }
};

struct WriteVisitor {
  const cty::Type& type;
  cty::Value::Members members;
  base::Status status;
  template <class T>
  void operator()(std::string_view name, const T& field) {
    if (!status) return;
    const auto it = type.attributes().find(name);
    if (it == type.attributes().end()) {
      status = base::Err(NoSuchAttribute(name));
      return;
    }
    auto value = Codec<T>::Write(field, it->second);
    if (value) {
      members.emplace(name, std::move(*value));
    } else {
      status = base::Err(At(value.error(), name));
    }
  }
};

template <HasFields T>
struct Codec<T> {
  static constexpr bool kSeesUnknown = true;
  static base::Result<T> Read(const cty::Value& v) {
    if (v.kind() != cty::Value::Kind::kObject) return base::Err(WrongKind("an object", v));
    T result{};
    ReadVisitor visitor{v, {}};
    T::Fields(result, visitor);
    if (!visitor.status) return base::Err(std::move(visitor.status).error());
    return result;
  }
  static base::Result<cty::Value> Write(const T& v, const cty::Type& type) {
    WriteVisitor visitor{type, {}, {}};
    T::Fields(v, visitor);
    if (!visitor.status) return base::Err(std::move(visitor.status).error());
    RETURN_IF_ERROR(CheckAllWritten(type, visitor.members));
    return cty::Value::Object(std::move(visitor.members));
  }
};

}  // namespace model_internal

/// Reads a model from an object. Error: kInternal with the path: the model and the schema do not
/// fit, or a field without Attr is null or unknown.
template <class M>
base::Result<M> FromValue(const cty::Value& value) {
  return model_internal::Codec<M>::Read(value);
}

/// Writes a model as an object of `type` (the schema's implied type). Error: kInternal with the
/// path: model and type do not list the same names.
template <class M>
base::Result<cty::Value> ToValue(const M& model, const cty::Type& type) {
  return model_internal::Codec<M>::Write(model, type);
}

}  // namespace sless::framework
