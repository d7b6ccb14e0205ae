#pragma once

// Exact numbers: Terraform computes with 512 bits, so a double would make false differences.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/base/result.h"

namespace sless::cty {

/// A finite decimal number: an int64, or its canonical plain decimal text ("0.1",
/// "18446744073709551616"). Two numbers are equal exactly when their values are.
class Number {
 public:
  Number() = default;
  explicit Number(int64_t value) : int_(value) {}

  /// Reads sign, digits, fraction and exponent ("-1.50e3"). Error: kInvalidArgument for anything
  /// else, for more than 8192 characters, or an exponent outside ±4096.
  static base::Result<Number> Parse(std::string_view text);
  /// The shortest text that gives this double again, for values of APIs. Error: kInvalidArgument
  /// for NaN and infinity.
  static base::Result<Number> FromDouble(double value);
  /// Exactly this double's value, as hosts mean it on the wire. Error: as FromDouble.
  static base::Result<Number> FromExactDouble(double value);

  /// The value where it is whole and fits, else nothing.
  std::optional<int64_t> AsInt64() const {
    return text_.empty() ? std::optional(int_) : std::nullopt;
  }
  /// Nearest double (may be infinite for huge numbers).
  double AsDouble() const;
  /// The double of exactly this value, if there is one.
  std::optional<double> AsExactDouble() const;
  std::string ToString() const { return text_.empty() ? std::to_string(int_) : text_; }

  bool operator==(const Number&) const = default;
  /// Some total order that agrees with ==; not the numeric one.
  auto operator<=>(const Number&) const = default;

 private:
  int64_t int_ = 0;
  std::string text_;  // "" where int_ is the value
};

}  // namespace sless::cty
