#pragma once

#include <cstdint>

namespace sless::domain {

/// Replicas for the load: as many as `in_flight` + `waiting` calls need at `concurrency` each,
/// within [min, max]. Takes any numbers: negative loads count as 0, a concurrency below 1 as 1, and
/// max wins where min is above it.
int64_t WantedReplicas(int64_t in_flight, int64_t waiting, int64_t concurrency,
                       int64_t min_replicas, int64_t max_replicas);

}  // namespace sless::domain
