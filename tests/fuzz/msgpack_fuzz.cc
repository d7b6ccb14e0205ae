// Fuzzer of the MessagePack and JSON readers. Two ways to run it:
//   clang++ -fsanitize=fuzzer,address,undefined -DSLESS_LIBFUZZER …    libFuzzer drives it
//   g++ -fsanitize=address,undefined …; ./msgpack_fuzz [seconds] [seed]   replays random mutations of valid values
// Every input: if it is read, it must be written and read again as the same value.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "provider/cty/msgpack.h"
#include "provider/cty/testing/random_value.h"
#include "provider/cty/wire_json.h"

namespace {

using namespace sless::cty;  // NOLINT: a test program

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "msgpack_fuzz: %s\n", what);
  std::abort();
}

const Type& FuzzType() {
  static const Type type = Type::Object(
      {{"s", Type::String()},
       {"n", Type::Number()},
       {"d", Type::Dynamic()},
       {"l", Type::List(Type::Object({{"b", Type::Bool()}, {"m", Type::Map(Type::Set(Type::Number()))}}))},
       {"t", Type::Tuple({Type::String(), Type::Dynamic()})}});
  return type;
}

void TryOne(std::string_view input) {
  if (const auto value = DecodeMsgpack(input, FuzzType())) {
    const auto bytes = EncodeMsgpack(*value, FuzzType());
    Require(bytes.has_value(), "a value that was read cannot be written");
    const auto back = DecodeMsgpack(*bytes, FuzzType());
    Require(back && *back == *value, "a value changes when it is written and read");
  }
  if (const auto value = DecodeJson(input, FuzzType(), {.ignore_extra_attributes = true})) {
    Require(EncodeJson(*value, FuzzType()).has_value(), "JSON that was read cannot be written");
  }
  (void)DecodeAnyJson(input);
  (void)Type::FromJson(input);
}

std::string Mutate(testing::Random& random, std::string bytes) {
  for (uint64_t i = random.Below(6); i > 0 && !bytes.empty(); --i) {
    const size_t at = random.Below(bytes.size());
    switch (random.Below(4)) {
      case 0: bytes[at] = static_cast<char>(random.Below(256)); break;
      case 1: bytes.erase(at, 1 + random.Below(8)); break;
      case 2: bytes.insert(at, 1 + random.Below(4), static_cast<char>(random.Below(256))); break;
      default: bytes += bytes.substr(at, random.Below(40)); break;
    }
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  TryOne(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}

#ifndef SLESS_LIBFUZZER
int main(int argc, char** argv) {
  const auto seconds = std::chrono::seconds(argc > 1 ? std::atoi(argv[1]) : 10);
  uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const auto end = std::chrono::steady_clock::now() + seconds;
  uint64_t runs = 0;
  for (; std::chrono::steady_clock::now() < end; ++runs, ++seed) {
    testing::Random random(seed);
    const Value value = testing::RandomValue(random, FuzzType(), {.null_percent = 5, .unknown_percent = 5});
    TryOne(Mutate(random, EncodeMsgpack(value, FuzzType()).value()));
    const Value known = UnknownsToNull(value);
    TryOne(Mutate(random, EncodeJson(known, FuzzType()).value()));
  }
  std::printf("%llu inputs, last seed %llu: no crash\n", static_cast<unsigned long long>(2 * runs),
              static_cast<unsigned long long>(seed - 1));
  return 0;
}
#endif
