#include "server/domain/scaling.h"

#include <algorithm>

namespace sless::domain {

int64_t WantedReplicas(int64_t in_flight, int64_t waiting, int64_t concurrency,
                       int64_t min_replicas, int64_t max_replicas) {
  constexpr int64_t kMost = int64_t{1} << 40;  // far above any load, so that the sum is safe
  const int64_t calls =
      std::clamp<int64_t>(in_flight, 0, kMost) + std::clamp<int64_t>(waiting, 0, kMost);
  const int64_t each = std::max<int64_t>(concurrency, 1);
  const int64_t needed = calls / each + (calls % each != 0 ? 1 : 0);
  return std::min(std::max(needed, min_replicas), max_replicas);
}

}  // namespace sless::domain
