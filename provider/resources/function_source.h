#pragma once

// The code of a function as the configuration names it: source_dir, source_zip or source_code.

#include <string>

#include "client/api/function.h"
#include "client/source/source.h"
#include "provider/cty/value.h"
#include "provider/framework/diagnostics.h"

namespace sless::resources {

/// type, path and code as written; hash is left empty. A source whose attribute is unknown or null
/// gives type "".
api::Source SourceOf(const cty::Value& object);
/// "source_dir" for type "dir", and so on; "source_dir" for a type that is not known.
std::string SourceAttribute(const api::Source& source);

struct LoadedSource {
  source::Tree tree;
  std::string hash;
};

/// Reads the source, hashes it and looks for the handler in it. Problems become diagnostics at the
/// source's attribute, or at entrypoint or runtime; then the result is empty.
std::optional<LoadedSource> LoadSource(const api::Source& source, const std::string& runtime,
                                       const std::string& entrypoint,
                                       framework::Diagnostics& diagnostics);

}  // namespace sless::resources
