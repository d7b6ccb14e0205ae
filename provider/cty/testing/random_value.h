#pragma once

// Random types and values for tests. The same seed gives the same sequence everywhere.

#include <cstdint>
#include <random>

#include "provider/cty/value.h"

namespace sless::cty::testing {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  /// 0 to below - 1.
  uint64_t Below(uint64_t below) { return engine_() % below; }
  bool Chance(int percent) { return Below(100) < static_cast<uint64_t>(percent); }

 private:
  std::mt19937_64 engine_;
};

struct ValueOptions {
  int null_percent = 10;
  int unknown_percent = 10;
};

/// A type at most `depth` levels deep, without dynamic inside collections.
Type RandomType(Random& random, int depth);
Value RandomValue(Random& random, const Type& type, const ValueOptions& options = {});
std::string RandomText(Random& random);
Number RandomNumber(Random& random);

}  // namespace sless::cty::testing
