#pragma once

// The bounds and words of the Doc declarations as checks: stated once, in client/api. For this room
// only.

#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "client/api/object.h"
#include "client/base/result.h"
#include "client/base/strings.h"

namespace sless::domain {

class BoundsVisitor {
 public:
  explicit BoundsVisitor(std::string path) : path_(std::move(path)) {}

  template <class T>
  void operator()(std::string_view name, const T& value, const api::Doc& doc) {
    if (status) status = Check(path_ + "/" + std::string(name), value, doc);
  }

  base::Status status;

 private:
  template <class T>
  static base::Status Check(const std::string& path, const T& value, const api::Doc& doc) {
    if constexpr (std::is_same_v<T, std::string>) {
      return CheckText(path, value, doc);
    } else if constexpr (std::is_same_v<T, int64_t>) {
      return CheckNumber(path, value, doc);
    } else if constexpr (std::is_arithmetic_v<T>) {
      return base::Ok();
    } else if constexpr (api::IsOptional<T>::value) {
      return value ? Check(path, *value, doc) : base::Ok();
    } else if constexpr (api::IsVector<T>::value) {
      for (size_t i = 0; i < value.size(); ++i)
        RETURN_IF_ERROR(Check(fmt::format("{}/{}", path, i), value[i], doc));
      return base::Ok();
    } else if constexpr (std::is_same_v<T, std::map<std::string, std::string>>) {
      return base::Ok();  // each map has a check of its own
    } else {
      BoundsVisitor inner(path);
      T::Fields(value, inner);
      return inner.status;
    }
  }

  static base::Status CheckNumber(const std::string& path, int64_t value, const api::Doc& doc) {
    if (value >= doc.min && value <= doc.max) return base::Ok();
    if (doc.max == INT64_MAX) {
      return base::Err(base::Code::kInvalidArgument,
                       fmt::format("want a number of at least {}, got {}", doc.min, value), path);
    }
    return base::Err(base::Code::kInvalidArgument,
                     fmt::format("want a number from {} to {}, got {}", doc.min, doc.max, value),
                     path);
  }

  static base::Status CheckText(const std::string& path, const std::string& value,
                                const api::Doc& doc) {
    if (!base::IsUtf8(value))
      return base::Err(base::Code::kInvalidArgument, "the text is not valid UTF-8", path);
    if (doc.values.empty()) return base::Ok();
    const auto words = base::Split(doc.values, '|');
    for (const auto& word : words) {
      if (value == word) return base::Ok();
    }
    const std::string near = base::Nearest(value, words);
    return base::Err(base::Code::kInvalidArgument,
                     fmt::format("want one of \"{}\", got \"{}\"{}", base::Join(words, "\", \""),
                                 base::Truncate(value, 60),
                                 near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)),
                     path);
  }

  std::string path_;
};

/// All numbers in range, all words known, all texts UTF-8. Error: kInvalidArgument, field below
/// `path`.
template <class T>
base::Status CheckBounds(const T& value, const std::string& path) {
  BoundsVisitor visitor(path);
  T::Fields(value, visitor);
  return visitor.status;
}

}  // namespace sless::domain
