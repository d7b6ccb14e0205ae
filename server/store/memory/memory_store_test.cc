#include "server/store/memory/memory_store.h"

#include "server/store/testing/object_store_conformance.h"

namespace sless::store {

INSTANTIATE_TEST_SUITE_P(Memory, ObjectStoreConformance,
                         testing::ValuesIn(StoreDriver(MakeMemoryStore)));

}  // namespace sless::store
