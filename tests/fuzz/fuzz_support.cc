#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

std::string_view Parts::Line() {
  const size_t newline = rest_.find('\n');
  const auto line = rest_.substr(0, newline);
  rest_ = newline == std::string_view::npos ? std::string_view() : rest_.substr(newline + 1);
  return line;
}

}  // namespace sless::fuzz
