// terraform-provider-sless: the provider on the plugin transport.

#include <cstdlib>
#include <string>

#include "provider/plugin/serve.h"
#include "provider/provider.h"

extern char** environ;

namespace {

std::string FromEnvironment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

int main(int argc, char** argv) {
  return sless::plugin::Serve(argc, argv, environ,
                              {.name = "sless", .address = "sless/sless", .version = SLESS_VERSION},
                              [] {
                                return sless::provider::MakeProvider(
                                    {.endpoint = FromEnvironment("SLESS_ENDPOINT"),
                                     .token = FromEnvironment("SLESS_TOKEN"),
                                     .default_namespace = FromEnvironment("SLESS_NAMESPACE")});
                              });
}
