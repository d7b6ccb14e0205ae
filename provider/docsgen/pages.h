#pragma once

// The registry's documentation pages, from a provider's schemas and the examples.

#include <map>
#include <string>

#include "client/base/result.h"
#include "provider/framework/provider.h"

namespace sless::docsgen {

/// Path below docs/ → text of the page: index.md and resources/<name>.md. `root` is the repository:
/// examples are read from examples/provider/provider.tf and
/// examples/resources/<type>/{resource.tf,import.sh}, import.sh where there is one. `name` is the
/// provider's type name, "sless". Error: kNotFound an example is missing.
base::Result<std::map<std::string, std::string>> MakePages(const framework::Provider& provider,
                                                           const std::string& name,
                                                           const std::string& root);

}  // namespace sless::docsgen
