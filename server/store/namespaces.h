#pragma once

#include <string>
#include <vector>

#include "server/store/object_store.h"

namespace sless::store {

/// Namespaces that hold an object of `kind`, in order, from behind `after` ("": from the first), at
/// most `limit` of them. Reads one object of each. Errors: as ObjectStore::List.
base::Result<std::vector<std::string>> Namespaces(const ObjectStore& store, const std::string& kind,
                                                  const std::string& after, size_t limit);

}  // namespace sless::store
