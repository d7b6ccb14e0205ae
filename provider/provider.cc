#include "provider/provider.h"

#include <fmt/format.h>

#include <fstream>

#include "client/base/strings.h"
#include "provider/framework/validators.h"
#include "provider/resources/function_resource.h"
#include "provider/resources/job_resource.h"
#include "provider/resources/session.h"
#include "provider/resources/trigger_resource.h"
#include "provider/resources/values.h"

namespace sless::provider {
namespace {

using cty::Path;
using cty::Value;

constexpr int64_t kDefaultTimeoutSec = 60;
constexpr int64_t kDefaultRetries = 4;

std::string EndpointProblem(const std::string& text) {
  for (const std::string_view scheme : {"http://", "https://", "http+unix://"}) {
    if (text.starts_with(scheme) && text.size() > scheme.size()) return "";
  }
  return "must be a URL such as https://sless.example.com or http://127.0.0.1:8080";
}

framework::Validator NotEmpty() {
  return framework::StringRule(
      "", [](const std::string& text) { return text.empty() ? "must not be empty" : ""; });
}

base::Result<std::unique_ptr<resources::Backend>> ConnectByRest(rest::ClientOptions options) {
  ASSIGN_OR_RETURN(auto client, rest::SlessClient::Make(std::move(options)));
  return resources::MakeRestBackend(std::move(client));
}

class SlessProvider final : public framework::Provider {
 public:
  SlessProvider(Environment environment, BackendFactory connect)
      : environment_(std::move(environment)),
        connect_(connect ? std::move(connect) : ConnectByRest) {}

  framework::Schema Schema() const override {
    framework::Schema schema;
    schema.description =
        "Runs functions: a directory of Python or Node code becomes a live URL, a cron job or a "
        "one-shot run. The provider talks to a slessd "
        "server; endpoint and token can be given in the configuration or by environment variables.";
    schema.attributes = {
        {"endpoint",
         framework::String(),
         {.optional = true,
          .description = "URL of the slessd server, such as `https://sless.example.com`. Also "
                         "`SLESS_ENDPOINT`.",
          .validators = {framework::StringRule("", EndpointProblem)}}},
        {"token",
         framework::String(),
         {.optional = true,
          .sensitive = true,
          .description = "Token of the server; `slessd token create` makes one. Better given by "
                         "`SLESS_TOKEN`, so that it is in no file.",
          .validators = {NotEmpty()}}},
        {"namespace",
         framework::String(),
         {.optional = true,
          .description = "Namespace of resources that set none. Also `SLESS_NAMESPACE`; `default` "
                         "where neither is set. A change of it moves no "
                         "resource that exists.",
          .validators = {framework::StringRule(
              "", [](const std::string& text) { return base::DnsLabelProblem(text); })}}},
        {"ca_file",
         framework::String(),
         {.optional = true,
          .description = "PEM file with the certificates of the authorities that the server's "
                         "certificate may be signed by; the system's "
                         "where it is not set.",
          .validators = {NotEmpty()}}},
        {"request_timeout_sec",
         framework::Int64(),
         {.optional = true,
          .description = fmt::format(
              "Longest time of one request in seconds, without what it waits for; default {}.",
              kDefaultTimeoutSec),
          .validators = {framework::Between(1, 3600)}}},
        {"max_retries",
         framework::Int64(),
         {.optional = true,
          .description = fmt::format("How often a request is sent again where the server cannot be "
                                     "reached for a moment; default {}.",
                                     kDefaultRetries),
          .validators = {framework::Between(0, 20)}}},
    };
    return schema;
  }

  void Configure(const framework::ConfigureRequest& request,
                 framework::ConfigureResponse& response) const override;

  std::vector<std::unique_ptr<framework::Resource>> Resources() const override {
    std::vector<std::unique_ptr<framework::Resource>> list;
    list.push_back(std::make_unique<resources::FunctionResource>());
    list.push_back(std::make_unique<resources::TriggerResource>());
    list.push_back(std::make_unique<resources::JobResource>());
    return list;
  }

 private:
  Environment environment_;
  BackendFactory connect_;
};

// The attribute, where it is null the variable. A missing one is an error here already: whoever
// configures the provider uses it.
std::string Required(const Value& config, std::string_view attribute,
                     const std::string& from_environment, std::string_view variable,
                     std::string_view what, framework::Diagnostics& diagnostics) {
  if (!config.Get(attribute).IsNull()) return resources::TextAt(config, attribute);
  if (from_environment.empty()) {
    diagnostics.AddError(Path(attribute), fmt::format("Missing {}", attribute),
                         fmt::format("The provider needs {}. Set the attribute {} in the provider "
                                     "block, or the environment variable {}.",
                                     what, attribute, variable));
  }
  return from_environment;
}

int64_t NumberOr(const Value& config, std::string_view name, int64_t fallback) {
  return config.Get(name).IsKnown() ? resources::IntAt(config, name) : fallback;
}

void CheckCaFile(const std::string& path, framework::Diagnostics& diagnostics) {
  if (path.empty()) return;
  std::ifstream file(path);
  if (!file.good()) {
    diagnostics.AddError(Path("ca_file"), "Cannot read ca_file",
                         fmt::format("The file \"{}\" is not there or cannot be read. A relative "
                                     "path starts where terraform runs.",
                                     path));
    return;
  }
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("-----BEGIN ") && line.find("CERTIFICATE-----") != line.npos) return;
  }
  diagnostics.AddError(
      Path("ca_file"), "Invalid ca_file",
      fmt::format("The file \"{}\" holds no certificate in PEM form (-----BEGIN CERTIFICATE-----).",
                  path));
}

void SlessProvider::Configure(const framework::ConfigureRequest& request,
                              framework::ConfigureResponse& response) const {
  const auto& config = request.config;
  auto& diagnostics = response.diagnostics;
  rest::ClientOptions options;
  options.endpoint = Required(config, "endpoint", environment_.endpoint, "SLESS_ENDPOINT",
                              "the URL of the slessd server", diagnostics);
  options.token = base::Secret(
      Required(config, "token", environment_.token, "SLESS_TOKEN",
               "a token of the slessd server (`slessd token create` makes one)", diagnostics));
  options.ca_file = resources::TextAt(config, "ca_file");
  options.request_timeout =
      std::chrono::seconds(NumberOr(config, "request_timeout_sec", kDefaultTimeoutSec));
  options.max_retries = static_cast<int>(NumberOr(config, "max_retries", kDefaultRetries));
  options.user_agent = fmt::format("terraform-provider-sless/{} (terraform {})", SLESS_VERSION,
                                   request.terraform_version);
  CheckCaFile(options.ca_file, diagnostics);
  if (diagnostics.HasError()) return;

  resources::Session::Settings settings;
  settings.endpoint = options.endpoint;
  const auto& ns = config.Get("namespace");
  if (!ns.IsUnknown()) {
    settings.default_namespace = ns.IsKnown() ? ns.AsString()
                                 : environment_.default_namespace.empty()
                                     ? "default"
                                     : environment_.default_namespace;
    const auto problem = base::DnsLabelProblem(*settings.default_namespace);
    if (!problem.empty()) {
      diagnostics.AddError(
          Path("namespace"), "Invalid namespace",
          fmt::format("The namespace \"{}\" (attribute namespace or SLESS_NAMESPACE) is wrong: {}.",
                      *settings.default_namespace, problem));
      return;
    }
  }
  // Nothing is guessed for a value that comes later: no backend, no remote checks.
  std::unique_ptr<resources::Backend> backend;
  const bool known = !config.Get("endpoint").IsUnknown() && !config.Get("token").IsUnknown() &&
                     !config.Get("ca_file").IsUnknown();
  if (known) {
    auto made = connect_(std::move(options));
    if (!made) {
      const bool token = made.error().field == "/token";
      diagnostics.AddError(
          Path(token ? "token" : "endpoint"), token ? "Invalid token" : "Invalid endpoint",
          fmt::format("{}. The {} comes from the attribute {} or from {}.", made.error().message,
                      token ? "token" : "endpoint", token ? "token" : "endpoint",
                      token ? "SLESS_TOKEN" : "SLESS_ENDPOINT"));
      return;
    }
    backend = std::move(*made);
  }
  response.data = framework::ProviderData::Of(
      std::make_shared<resources::Session>(std::move(settings), std::move(backend), request.clock));
}

}  // namespace

std::unique_ptr<framework::Provider> MakeProvider(Environment environment, BackendFactory connect) {
  return std::make_unique<SlessProvider>(std::move(environment), std::move(connect));
}

}  // namespace sless::provider
