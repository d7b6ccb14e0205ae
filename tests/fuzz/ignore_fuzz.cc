// .slessignore: a path in the first line, the rules after it. Rules cost what they may cost, and no
// more.

#include "client/source/ignore.h"
#include "tests/fuzz/fuzz_main.h"

namespace sless::fuzz {

std::vector<std::string> Seeds() {
  return {"a/b/c.pyc\n*.pyc\n!b/*.pyc\n/a\n**/c\n",
          "node_modules/x\n# comment\n!node_modules/\n\\#x\n",
          "src/[a-z]/x\nsrc/[!b-y]/?\n[\n[]]\n[^-]\n\\\n",
          "a/a/a/a/a/a/a/a/a/b\n**/a/**/a/**/a/**/c\n",
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab\n*a*a*a*a*a*a*a*a*c\n",
          "d e/ f \nd\\ e/\n f\\ \n\r\n"};
}

}  // namespace sless::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sless;  // NOLINT: a test program
  fuzz::Parts parts(fuzz::Text(data, size));
  const auto path = parts.Line();
  constexpr uint64_t kSteps = 1'000'000;
  source::IgnoreRules rules(parts.Rest(), kSteps);
  for (const bool directory : {false, true}) {
    const bool verdict = rules.Ignored(path, directory, false);
    if (!rules.TooCostly())
      fuzz::Require(rules.Ignored(path, directory, false) == verdict || rules.TooCostly(),
                    "a verdict stays the same");
  }
  uint64_t steps = 0;
  const auto pattern = parts.Line();
  (void)source::GlobMatches(pattern, path, steps);
  fuzz::Require(steps <= 4 * (pattern.size() + 1) * (path.size() + 1),
                "a pattern costs at most its product with the text");
  return 0;
}
