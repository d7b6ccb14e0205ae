#include "client/transport/transport.h"

#include <algorithm>

namespace sless::transport {
namespace {

bool SameName(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

void Headers::Set(std::string_view name, std::string value) {
  std::erase_if(fields_, [&](const auto& field) { return SameName(field.first, name); });
  fields_.emplace_back(std::string(name), std::move(value));
}

std::string_view Headers::Get(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (SameName(key, name)) return value;
  }
  return "";
}

bool Headers::Has(std::string_view name) const {
  return std::any_of(fields_.begin(), fields_.end(),
                     [&](const auto& field) { return SameName(field.first, name); });
}

}  // namespace sless::transport
