// JSON values of the plugin protocol (state files), types, numbers and the provider's private
// bytes.

#include "provider/cty/testing/random_value.h"
#include "provider/cty/wire_json.h"
#include "provider/framework/private_data.h"
#include "tests/fuzz/cty_type.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {

std::vector<std::string> Seeds() {
  std::vector<std::string> out;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    cty::testing::Random random(seed);
    const auto value =
        cty::testing::RandomValue(random, CtyType(), {.null_percent = 5, .unknown_percent = 0});
    out.push_back(cty::EncodeJson(value, CtyType()).value());
  }
  return out;
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  const auto text = fuzz::Text(data, size);
  for (const bool ignore : {false, true}) {
    const auto value = cty::DecodeJson(text, fuzz::CtyType(), {.ignore_extra_attributes = ignore});
    if (!value) continue;
    const auto written = cty::EncodeJson(*value, fuzz::CtyType());
    fuzz::Require(written.has_value(), "JSON that was read cannot be written");
    const auto back = cty::DecodeJson(*written, fuzz::CtyType());
    fuzz::Require(back && *back == *value, "a value changes when it is written and read");
  }
  (void)cty::DecodeAnyJson(text);
  if (const auto type = cty::Type::FromJson(text)) {
    fuzz::Require(cty::Type::FromJson(type->ToJson()) == *type,
                  "a type changes when it is written and read");
  }
  if (const auto number = cty::Number::Parse(text)) {
    fuzz::Require(cty::Number::Parse(number->ToString()) == *number,
                  "a number changes when it is written and read");
  }
  const auto state = framework::PrivateData::Decode(text);
  fuzz::Require(framework::PrivateData::Decode(state.Encode()) == state,
                "private data changes when it is written and read");
  return 0;
}
