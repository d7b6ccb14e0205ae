#pragma once

// What every fuzz target is made of. <name>_fuzz.cc defines LLVMFuzzerTestOneInput and Seeds; with
// -DSLESS_FUZZ=ON (clang) libFuzzer drives it, otherwise the main of fuzz_main.cc, which mutates
// the seeds and the files of corpus/<name>.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace sless::fuzz {

/// Sound inputs that code makes better than a file could hold; may be empty.
std::vector<std::string> Seeds();

/// Ends the program with `what` where a promise of the code under test does not hold.
void Require(bool condition, const char* what);

/// Cuts an input into parts: each line is one, the last one takes the rest whatever it holds.
class Parts {
 public:
  explicit Parts(std::string_view input) : rest_(input) {}
  std::string_view Line();
  std::string_view Rest() { return rest_; }

 private:
  std::string_view rest_;
};

/// The bytes of an input as text.
inline std::string_view Text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace sless::fuzz
