#pragma once

// The sless provider: its configuration, and the list of what it offers.

#include <functional>
#include <memory>
#include <string>

#include "client/rest/sless_client.h"
#include "provider/framework/provider.h"
#include "provider/resources/backend.h"

namespace sless::provider {

/// What main read from the environment; "" where a variable is not set.
struct Environment {
  std::string endpoint;           ///< SLESS_ENDPOINT
  std::string token;              ///< SLESS_TOKEN
  std::string default_namespace;  ///< SLESS_NAMESPACE
};

/// Makes the connection of a configured provider. Error: the options are wrong (the endpoint is no
/// URL).
using BackendFactory =
    std::function<base::Result<std::unique_ptr<resources::Backend>>(rest::ClientOptions)>;

/// THE LIST: sless_function, sless_trigger, sless_job. Without `connect` it talks REST over HTTP.
std::unique_ptr<framework::Provider> MakeProvider(Environment environment = {},
                                                  BackendFactory connect = nullptr);

}  // namespace sless::provider
