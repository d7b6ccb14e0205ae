#pragma once

// A provider with the three resources over a backend of the test.

#include <memory>
#include <optional>
#include <string>

#include "provider/framework/provider.h"
#include "provider/resources/backend.h"

namespace sless::resources {

/// `backend` outlives the provider; nullptr stands for an endpoint that is not known yet.
/// `default_namespace`: see Session::Settings.
std::unique_ptr<framework::Provider> MakeTestProvider(
    Backend* backend, std::optional<std::string> default_namespace = "default");

}  // namespace sless::resources
