#pragma once

#include "provider/cty/type.h"

namespace sless::fuzz {

/// A type with one of everything.
inline const cty::Type& CtyType() {
  using cty::Type;
  static const Type type =
      Type::Object({{"s", Type::String()},
                    {"n", Type::Number()},
                    {"d", Type::Dynamic()},
                    {"l", Type::List(Type::Object(
                              {{"b", Type::Bool()}, {"m", Type::Map(Type::Set(Type::Number()))}}))},
                    {"t", Type::Tuple({Type::String(), Type::Dynamic()})}});
  return type;
}

}  // namespace sless::fuzz
