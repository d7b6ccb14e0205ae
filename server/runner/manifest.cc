#include "server/runner/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace sless::runner {

base::Result<std::vector<std::string>> WorkerCommand(const WorkerFacts& facts) {
  std::vector<std::string> command{facts.interpreter};
  if (facts.runtime == "python3.11") {
    // -I -S: neither the host's packages nor PYTHON* variables leak in; -B: the code is read-only.
    for (const char* flag : {"-I", "-S", "-B", "-X", "utf8"}) command.emplace_back(flag);
  } else if (facts.runtime == "nodejs20") {
    // V8 sizes its heap by the machine; here the memory is the function's.
    command.push_back(
        fmt::format("--max-old-space-size={}", std::max<int64_t>(16, facts.memory_mb * 3 / 4)));
    // Without a sandbox the code is a link beside a link to node_modules; packages are looked for
    // from the link's place.
    std::error_code ignored;
    if (std::filesystem::is_symlink(facts.code, ignored))
      command.emplace_back("--preserve-symlinks");
  } else {
    return base::Err(
        base::Code::kInvalidArgument,
        fmt::format("runtime \"{}\" is not known; known: python3.11, nodejs20", facts.runtime));
  }
  for (const auto& word : {facts.worker, facts.code, facts.deps, facts.entrypoint,
                           fmt::format("{}", facts.concurrency)}) {
    command.push_back(word);
  }
  return command;
}

}  // namespace sless::runner
