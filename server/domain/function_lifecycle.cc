#include "server/domain/function_lifecycle.h"

#include <fmt/format.h>

#include "client/base/digest.h"

namespace sless::domain {
namespace {

// Length and bytes, so that no two lists of texts give one sequence.
void Add(base::Sha256& hash, std::string_view text) {
  hash.Update(fmt::format("{}:", text.size()));
  hash.Update(text);
}

}  // namespace

std::string RevisionInput(const api::FunctionSpec& spec) {
  base::Sha256 hash;
  Add(hash, "sless-revision-1");
  Add(hash, spec.source.hash);
  Add(hash, spec.code_hash ? "=" + *spec.code_hash : "");
  Add(hash, spec.runtime);
  Add(hash, spec.entrypoint);
  for (const int64_t number : {spec.memory_mb, spec.timeout_sec, spec.concurrency})
    Add(hash, std::to_string(number));
  Add(hash, std::to_string(spec.environment.size()));
  for (const auto& [name, value] : spec.environment) {
    Add(hash, name);
    Add(hash, value);
  }
  return hash.Hex();
}

}  // namespace sless::domain
