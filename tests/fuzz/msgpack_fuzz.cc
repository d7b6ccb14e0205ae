// MessagePack values (DynamicValue of the plugin protocol). What is read must be written and read
// again as the same value.

#include "provider/cty/msgpack.h"
#include "provider/cty/testing/random_value.h"
#include "tests/fuzz/cty_type.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {

std::vector<std::string> Seeds() {
  std::vector<std::string> out;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    cty::testing::Random random(seed);
    const auto value =
        cty::testing::RandomValue(random, CtyType(), {.null_percent = 5, .unknown_percent = 5});
    out.push_back(cty::EncodeMsgpack(value, CtyType()).value());
  }
  return out;
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  const auto value = cty::DecodeMsgpack(fuzz::Text(data, size), fuzz::CtyType());
  if (!value) {
    fuzz::Require(value.error().code == base::Code::kInvalidArgument, "an error of another kind");
    return 0;
  }
  const auto bytes = cty::EncodeMsgpack(*value, fuzz::CtyType());
  fuzz::Require(bytes.has_value(), "a value that was read cannot be written");
  const auto back = cty::DecodeMsgpack(*bytes, fuzz::CtyType());
  fuzz::Require(back && *back == *value, "a value changes when it is written and read");
  return 0;
}
