#include "provider/framework/semantic.h"

#include "client/base/json.h"

namespace sless::framework {

bool JsonEqual(const cty::Value& a, const cty::Value& b) {
  constexpr auto kString = cty::Value::Kind::kString;
  return a.kind() == kString && b.kind() == kString && base::JsonEqual(a.AsString(), b.AsString());
}

}  // namespace sless::framework
