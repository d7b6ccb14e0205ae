#pragma once

// Visitors over the Fields() declarations: JSON both ways. Include in .cc files only, it brings
// <nlohmann/json.hpp>.

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "client/api/object.h"
#include "client/base/json.h"
#include "client/base/result.h"
#include "client/base/strings.h"

namespace sless::api {

/// Unknown JSON members: an error when the server reads a request, ignored when a client reads a
/// response.
enum class Unknown { kError, kIgnore };

namespace fields_internal {

class Writer {
 public:
  template <class T>
  void operator()(std::string_view name, const T& value, const Doc&) {
    if constexpr (IsOptional<T>::value) {
      if (value) out[std::string(name)] = Write(*value);
    } else {
      out[std::string(name)] = Write(value);
    }
  }
  template <class T>
  static nlohmann::json Write(const T& value) {
    if constexpr (std::is_same_v<T, std::string> || std::is_arithmetic_v<T>) {
      return value;
    } else if constexpr (IsVector<T>::value) {
      auto list = nlohmann::json::array();
      for (const auto& item : value) list.push_back(Write(item));
      return list;
    } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
      auto map = nlohmann::json::object();
      for (const auto& [k, v] : value) map[k] = v;
      return map;
    } else {
      Writer inner;
      T::Fields(value, inner);
      return std::move(inner.out);
    }
  }
  nlohmann::json out = nlohmann::json::object();
};

/// RFC 6901 escaping of one reference token. Cut where it is longer than any real name: an error
/// never repeats a megabyte.
inline std::string Token(std::string_view name) {
  std::string out;
  for (const char c : base::Truncate(name, 256))
    out += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
  return out;
}

class Reader {
 public:
  Reader(const nlohmann::json& in, std::string path, Unknown unknown)
      : in_(in), path_(std::move(path)), unknown_(unknown) {}

  template <class T>
  void operator()(std::string_view name, T& value, const Doc&) {
    known_.emplace_back(name);
    if (error) return;
    const auto it = in_.find(std::string(name));
    if (it == in_.end() || it->is_null()) return;  // keeps the default
    const auto status = ReadValue(*it, path_ + "/" + std::string(name), unknown_, value);
    if (!status) error = status.error();
  }

  template <class T>
  static base::Status ReadValue(const nlohmann::json& in, const std::string& path, Unknown unknown,
                                T& value) {
    const auto wrong = [&](std::string_view want) {
      return base::Err(base::Code::kInvalidArgument,
                       fmt::format("want {}, got {}", want, in.type_name()), path);
    };
    if constexpr (std::is_same_v<T, std::string>) {
      if (!in.is_string()) return wrong("a string");
      value = in.get<std::string>();
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!in.is_boolean()) return wrong("a boolean");
      value = in.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      const bool wide = in.is_number_unsigned() && in.get<uint64_t>() > uint64_t(INT64_MAX);
      if (in.is_number_integer() && !wide) {
        value = in.get<int64_t>();
        return base::Ok();
      }
      // JSON has one kind of numbers: 256.0 is a whole one too, where a double holds it exactly.
      constexpr double kExact = 9007199254740992;  // 2^53
      const double real = in.is_number_float() ? in.get<double>() : kExact;
      if (std::abs(real) >= kExact || real != std::trunc(real)) {
        // Of what is a number here the value is no secret, as that of a text could be.
        return base::Err(base::Code::kInvalidArgument,
                         fmt::format("want a whole number of 64 bits, got {}",
                                     in.is_number() ? in.dump() : in.type_name()),
                         path);
      }
      value = static_cast<int64_t>(real);
    } else if constexpr (std::is_same_v<T, double>) {
      if (!in.is_number()) return wrong("a number");
      value = in.get<double>();
    } else if constexpr (IsOptional<T>::value) {
      typename T::value_type inner{};
      RETURN_IF_ERROR(ReadValue(in, path, unknown, inner));
      value = std::move(inner);
    } else if constexpr (IsVector<T>::value) {
      if (!in.is_array()) return wrong("a list");
      value.clear();
      for (size_t i = 0; i < in.size(); ++i) {
        typename T::value_type item{};
        RETURN_IF_ERROR(ReadValue(in[i], fmt::format("{}/{}", path, i), unknown, item));
        value.push_back(std::move(item));
      }
    } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
      if (!in.is_object()) return wrong("an object of strings");
      value.clear();
      for (const auto& [k, v] : in.items()) {
        RETURN_IF_ERROR(ReadValue(v, path + "/" + Token(k), unknown, value[k]));
      }
    } else {
      if (!in.is_object()) return wrong("an object");
      Reader inner(in, path, unknown);
      T::Fields(value, inner);
      RETURN_IF_ERROR(inner.Finish());
    }
    return base::Ok();
  }

  base::Status Finish() {
    if (error) return base::Err(*error);
    if (unknown_ == Unknown::kIgnore) return base::Ok();
    for (const auto& [key, value] : in_.items()) {
      bool found = false;
      for (const auto& name : known_) found = found || name == key;
      if (!found) {
        return base::Err(base::Code::kInvalidArgument,
                         fmt::format("unknown field \"{}\"; known: {}", base::Truncate(key, 256),
                                     fmt::join(known_, ", ")),
                         path_ + "/" + Token(key));
      }
    }
    return base::Ok();
  }

  std::optional<base::Error> error;

 private:
  const nlohmann::json& in_;
  std::string path_;
  Unknown unknown_;
  std::vector<std::string> known_;
};

}  // namespace fields_internal

/// The JSON form of any type with Fields(). Absent optionals are left out, all else is written.
template <class T>
nlohmann::json ToJson(const T& value) {
  return fields_internal::Writer::Write(value);
}
template <class T>
std::string ToJsonText(const T& value) {
  return base::DumpJson(ToJson(value));
}

/// Reads a type with Fields(); members that are absent or null keep their defaults. `path` is the
/// JSON pointer of `in`, used in Error.field. Error: kInvalidArgument.
template <class T>
base::Result<T> FromJson(const nlohmann::json& in, Unknown unknown, const std::string& path = "") {
  T value{};
  RETURN_IF_ERROR(fields_internal::Reader::ReadValue(in, path, unknown, value));
  return value;
}
template <class T>
base::Result<T> FromJsonText(std::string_view text, Unknown unknown, const std::string& path = "") {
  ASSIGN_OR_RETURN(const auto in, base::ParseJson(text));
  return FromJson<T>(in, unknown, path);
}

}  // namespace sless::api
