#include "provider/cty/number.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

namespace sless::cty {

using base::Code;
using base::Err;
using base::Result;

namespace {

constexpr size_t kMaxText = 8192;
constexpr int kMaxExponent = 4096;

tl::unexpected<base::Error> NotANumber(std::string_view text) {
  return Err(Code::kInvalidArgument,
             fmt::format("\"{}\" is not a decimal number", text.substr(0, 60)));
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The parts of a number's text: value = digits * 10^-scale.
struct Parts {
  bool negative = false;
  std::string digits;
  int scale = 0;
};

Result<Parts> Split(std::string_view text) {
  Parts parts;
  size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) parts.negative = text[i++] == '-';
  bool any = false;
  bool in_fraction = false;
  for (; i < text.size(); ++i) {
    if (IsDigit(text[i])) {
      any = true;
      parts.digits += text[i];
      if (in_fraction) ++parts.scale;
    } else if (text[i] == '.' && !in_fraction) {
      in_fraction = true;
    } else {
      break;
    }
  }
  if (!any) return NotANumber(text);
  if (i == text.size()) return parts;
  if (text[i] != 'e' && text[i] != 'E') return NotANumber(text);
  ++i;
  if (i < text.size() && text[i] == '+') ++i;
  int exponent = 0;
  const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), exponent);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument)
    return NotANumber(text);
  if (error != std::errc() || exponent > kMaxExponent || exponent < -kMaxExponent) {
    return Err(Code::kInvalidArgument,
               fmt::format("exponent of \"{}\" is outside ±{}", text.substr(0, 60), kMaxExponent));
  }
  parts.scale -= exponent;
  return parts;
}

// Plain decimal text without superfluous zeros; "0" for every zero.
std::string Canonical(Parts parts) {
  std::string& digits = parts.digits;
  if (parts.scale < 0) {
    digits.append(static_cast<size_t>(-parts.scale), '0');
    parts.scale = 0;
  }
  const auto scale = static_cast<size_t>(parts.scale);
  if (digits.size() <= scale) digits.insert(0, scale + 1 - digits.size(), '0');
  std::string whole = digits.substr(0, digits.size() - scale);
  std::string fraction = digits.substr(digits.size() - scale);
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size() - 1));
  fraction.erase(fraction.find_last_not_of('0') + 1);
  if (!fraction.empty()) whole += "." + fraction;
  if (parts.negative && whole != "0") whole.insert(0, 1, '-');
  return whole;
}

}  // namespace

Result<Number> Number::Parse(std::string_view text) {
  if (text.size() > kMaxText) {
    return Err(Code::kInvalidArgument,
               fmt::format("a number has at most {} characters, found {}", kMaxText, text.size()));
  }
  Number number;
  // Most numbers are short and whole.
  if (const auto [end, error] =
          std::from_chars(text.data(), text.data() + text.size(), number.int_);
      error == std::errc() && end == text.data() + text.size()) {
    return number;
  }
  ASSIGN_OR_RETURN(auto parts, Split(text));
  std::string canonical = Canonical(std::move(parts));
  number.int_ = 0;
  if (const auto [end, error] =
          std::from_chars(canonical.data(), canonical.data() + canonical.size(), number.int_);
      error == std::errc() && end == canonical.data() + canonical.size()) {
    return number;
  }
  number.int_ = 0;
  number.text_ = std::move(canonical);
  return number;
}

Result<Number> Number::FromDouble(double value) {
  if (!std::isfinite(value))
    return Err(Code::kInvalidArgument, "a number must be finite, found NaN or infinity");
  return Parse(fmt::format("{}", value));
}

Result<Number> Number::FromExactDouble(double value) {
  if (!std::isfinite(value))
    return Err(Code::kInvalidArgument, "a number must be finite, found NaN or infinity");
  // 1074 fraction digits hold every double exactly.
  return Parse(fmt::format("{:.1074f}", value));
}

double Number::AsDouble() const {
  if (text_.empty()) return static_cast<double>(int_);
  return std::strtod(text_.c_str(), nullptr);
}

std::optional<double> Number::AsExactDouble() const {
  const double value = AsDouble();
  const auto back = FromExactDouble(value);
  if (back && *back == *this) return value;
  return std::nullopt;
}

}  // namespace sless::cty
