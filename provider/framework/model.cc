#include "provider/framework/model.h"

#include <fmt/format.h>

#include <cmath>

namespace sless::framework::model_internal {

using base::Code;
using base::Err;
using base::Result;
using Kind = cty::Value::Kind;

base::Error WrongKind(std::string_view wanted, const cty::Value& found) {
  std::string_view what = "another kind of value";
  if (found.IsNull()) what = "null";
  if (found.IsUnknown()) what = "an unknown value";
  return base::Error{Code::kInternal, fmt::format("wanted {}, found {}", wanted, what), "", "", {}};
}

base::Error NoSuchAttribute(std::string_view name) {
  return base::Error{Code::kInternal,
                     fmt::format("the model lists \"{}\", the schema does not", name),
                     "",
                     "",
                     {}};
}

base::Error At(base::Error error, std::string_view step) {
  const bool joined = !error.message.empty() && error.message[0] == '[';
  const bool path_follows = joined || error.field == "path";
  error.message = path_follows ? fmt::format("{}{}{}", step, joined ? "" : ".", error.message)
                               : fmt::format("{}: {}", step, error.message);
  error.field = "path";
  return error;
}

Result<std::string> ReadString(const cty::Value& value) {
  if (value.kind() != Kind::kString) return Err(WrongKind("a string", value));
  return value.AsString();
}

Result<int64_t> ReadInt(const cty::Value& value) {
  if (value.kind() != Kind::kNumber) return Err(WrongKind("a whole number", value));
  const auto whole = value.AsNumber().AsInt64();
  if (!whole) {
    return Err(Code::kInternal, fmt::format("wanted a whole number of 64 bits, found {}",
                                            value.AsNumber().ToString()));
  }
  return *whole;
}

Result<bool> ReadBool(const cty::Value& value) {
  if (value.kind() != Kind::kBool) return Err(WrongKind("a bool", value));
  return value.AsBool();
}

Result<double> ReadDouble(const cty::Value& value) {
  if (value.kind() != Kind::kNumber) return Err(WrongKind("a number", value));
  const double number = value.AsNumber().AsDouble();
  if (!std::isfinite(number)) return Err(Code::kInternal, "wanted a number that a double can hold");
  return number;
}

Result<cty::Value> WriteDouble(double value) {
  ASSIGN_OR_RETURN(const auto number, cty::Number::FromDouble(value));
  return cty::Value::Number(number);
}

base::Status CheckAllWritten(const cty::Type& type, const cty::Value::Members& written) {
  for (const auto& [name, attribute] : type.attributes()) {
    if (!written.contains(name)) {
      return Err(Code::kInternal,
                 fmt::format("the schema has \"{}\", the model does not list it", name));
    }
  }
  return base::Ok();
}

cty::Value MakeSequence(const cty::Type& type, cty::Value::Elements elements) {
  return type.kind() == cty::Type::Kind::kSet ? cty::Value::Set(std::move(elements))
                                              : cty::Value::List(std::move(elements));
}

}  // namespace sless::framework::model_internal
