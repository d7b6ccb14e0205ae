#pragma once

#include <memory>

#include "client/base/clock.h"
#include "server/store/object_store.h"

namespace sless::store {

/// A store that forgets everything at its end: for tests, and the executable specification of
/// ObjectStore. `clock` outlives it.
std::unique_ptr<ObjectStore> MakeMemoryStore(const base::Clock& clock);

}  // namespace sless::store
