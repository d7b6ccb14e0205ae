#include "provider/resources/values.h"

#include <utility>

namespace sless::resources {

std::string TextAt(const cty::Value& object, std::string_view name) {
  return object.Get(name).AsString();
}

int64_t IntAt(const cty::Value& object, std::string_view name) {
  return object.Get(name).AsNumber().AsInt64().value_or(0);
}

std::map<std::string, std::string> MapAt(const cty::Value& object, std::string_view name) {
  std::map<std::string, std::string> out;
  for (const auto& [key, value] : object.Get(name).AsMap()) out[key] = value.AsString();
  return out;
}

cty::Value TextOrNull(const std::string& text, const cty::Value& like) {
  if (text.empty() && !(like.IsKnown() && like.AsString().empty())) return cty::Value::Null();
  return cty::Value::String(text);
}

cty::Value MapOrNull(const std::map<std::string, std::string>& map, const cty::Value& like) {
  if (map.empty() && !(like.IsKnown() && like.AsMap().empty())) return cty::Value::Null();
  return cty::Value::StringMap(map);
}

cty::Value FillUnknown(const cty::Value& wanted, const cty::Value& actual) {
  cty::Value out = wanted;
  for (const auto& [name, value] : wanted.AsMap()) {
    if (!value.IsWhollyKnown()) out = out.With(name, actual.Get(name));
  }
  return out;
}

void CopyAttributes(const cty::Value& source, std::initializer_list<std::string_view> names,
                    cty::Value& target) {
  for (const auto name : names) target = target.With(name, source.Get(name));
}

void MarkUnknown(std::initializer_list<std::string_view> names, cty::Value& target) {
  for (const auto name : names) target = target.With(name, cty::Value::Unknown());
}

bool Differs(const cty::Value& a, const cty::Value& b,
             std::initializer_list<std::string_view> names) {
  for (const auto name : names) {
    const auto& left = a.Get(name);
    const auto& right = b.Get(name);
    if (!left.IsWhollyKnown() || !right.IsWhollyKnown() || left != right) return true;
  }
  return false;
}

}  // namespace sless::resources
