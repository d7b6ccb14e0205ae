#include "server/reconcile/revision.h"

#include <filesystem>

#include "server/store/typed_impl.h"

SLESS_INSTANTIATE_TYPED(sless::reconcile::Revision);

namespace sless::reconcile {

std::string RevisionName(const std::string& function, int64_t number) {
  return function + "." + std::to_string(number);
}

runtime::RevisionKey KeyOfRevision(const Revision& revision, const std::string& function) {
  return {revision.metadata.ns, function, revision.spec.number};
}

runtime::ReplicaSpec ReplicaSpecOf(const Revision& revision) {
  const auto& function = revision.spec.function;
  return {function.runtime,         function.entrypoint,  revision.status.code_dir,
          revision.status.deps_dir, function.environment, function.memory_mb,
          function.timeout_sec,     function.concurrency};
}

bool LayersPresent(const Revision& revision, const std::string& layers_dir) {
  const auto lies_there = [&](const std::string& layer) {
    std::error_code error;
    return layer.starts_with(layers_dir) && std::filesystem::is_directory(layer, error);
  };
  const auto& status = revision.status;
  return !status.code_dir.empty() && lies_there(status.code_dir) &&
         (status.deps_dir.empty() || lies_there(status.deps_dir));
}

}  // namespace sless::reconcile
