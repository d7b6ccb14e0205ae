#pragma once

// Between Terraform's values and the texts, numbers and maps of API objects.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "provider/cty/value.h"

namespace sless::resources {

/// Content of an attribute; null and unknown give "", 0, {}.
std::string TextAt(const cty::Value& object, std::string_view name);
int64_t IntAt(const cty::Value& object, std::string_view name);
std::map<std::string, std::string> MapAt(const cty::Value& object, std::string_view name);

/// The API says "" and {} where Terraform may say null. `like` is what Terraform has now: an empty
/// content stays as it is there.
cty::Value TextOrNull(const std::string& text, const cty::Value& like);
cty::Value MapOrNull(const std::map<std::string, std::string>& map, const cty::Value& like);

/// `wanted` with each unknown attribute taken from `actual`: the only legal result of an apply that
/// went well.
cty::Value FillUnknown(const cty::Value& wanted, const cty::Value& actual);
/// Sets the named attributes to those of `source`.
void CopyAttributes(const cty::Value& source, std::initializer_list<std::string_view> names,
                    cty::Value& target);
void MarkUnknown(std::initializer_list<std::string_view> names, cty::Value& target);
/// True if one of the named attributes differs; unknown differs from everything.
bool Differs(const cty::Value& a, const cty::Value& b,
             std::initializer_list<std::string_view> names);

}  // namespace sless::resources
