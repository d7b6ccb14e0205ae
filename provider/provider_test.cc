#include "provider/provider.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "client/base/log.h"
#include "provider/cty/wire_json.h"
#include "provider/framework/engine/validate.h"
#include "provider/resources/session.h"
#include "provider/resources/testing/world.h"

namespace sless::provider {
namespace {

using resources::HasError;

// What Configure handed to the client, and what it said.
struct Configured {
  std::vector<rest::ClientOptions> options;
  framework::Diagnostics diagnostics;
  std::optional<std::string> default_namespace;
  bool connected = false;
};

Configured Configure(const Environment& environment, const std::string& config_json) {
  Configured out;
  base::NullLogger log;
  base::SystemClock clock;
  const auto provider = MakeProvider(
      environment,
      [&](rest::ClientOptions options) -> base::Result<std::unique_ptr<resources::Backend>> {
        out.options.push_back(options);
        return std::make_unique<resources::FakeBackend>();
      });
  const auto schema = provider->Schema();
  auto config = cty::DecodeJson(config_json, framework::ImpliedType(schema));
  if (!config) throw std::runtime_error(config.error().message);
  const auto value = cty::Transform(*config, [](const cty::Path&, const cty::Value& part) {
    return part.kind() == cty::Value::Kind::kString && part.AsString() == "<unknown>"
               ? cty::Value::Unknown()
               : part;
  });
  framework::ConfigureResponse response;
  provider->Configure({{}, log, clock, "1.11.4", value, {}}, response);
  out.diagnostics = response.diagnostics;
  if (auto* session = response.data.Get<resources::Session>()) {
    out.connected = session->connected();
    out.default_namespace = session->default_namespace();
  }
  return out;
}

const Environment kFull = {"http://env.test:1", "env-token", "env-ns"};

TEST(ProviderConfigure, TheConfigurationWinsOverTheEnvironment) {
  auto done = Configure(
      kFull,
      R"({"endpoint":"https://hcl.test","token":"hcl-token","namespace":"hcl-ns","request_timeout_sec":7,"max_retries":2})");
  ASSERT_EQ(done.options.size(), 1u) << done.diagnostics.ToString();
  EXPECT_EQ(done.options[0].endpoint, "https://hcl.test");
  EXPECT_EQ(done.options[0].token.Reveal(), "hcl-token");
  EXPECT_EQ(done.options[0].request_timeout, std::chrono::seconds(7));
  EXPECT_EQ(done.options[0].max_retries, 2);
  EXPECT_NE(done.options[0].user_agent.find("1.11.4"), std::string::npos);
  EXPECT_EQ(done.default_namespace, "hcl-ns");

  done = Configure(kFull, "{}");
  ASSERT_EQ(done.options.size(), 1u);
  EXPECT_EQ(done.options[0].endpoint, "http://env.test:1");
  EXPECT_EQ(done.options[0].token.Reveal(), "env-token");
  EXPECT_EQ(done.options[0].request_timeout, std::chrono::seconds(60));
  EXPECT_EQ(done.options[0].max_retries, 4);
  EXPECT_EQ(done.default_namespace, "env-ns");
  EXPECT_EQ(Configure({"http://a", "b", ""}, "{}").default_namespace, "default");
}

TEST(ProviderConfigure, MissingSettingsNameAttributeAndVariable) {
  const auto done = Configure({}, "{}");
  EXPECT_TRUE(HasError(done.diagnostics, "endpoint", "SLESS_ENDPOINT"));
  EXPECT_TRUE(HasError(done.diagnostics, "token", "SLESS_TOKEN"));
  EXPECT_TRUE(done.options.empty());
}

TEST(ProviderConfigure, UnknownValuesNeverFallBack) {
  for (const char* config :
       {R"({"endpoint":"<unknown>"})", R"({"token":"<unknown>"})", R"({"ca_file":"<unknown>"})"}) {
    const auto done = Configure(kFull, config);
    EXPECT_TRUE(done.diagnostics.empty()) << done.diagnostics.ToString();
    EXPECT_TRUE(done.options.empty()) << config;
    EXPECT_FALSE(done.connected);
  }
  EXPECT_EQ(Configure(kFull, R"({"namespace":"<unknown>"})").default_namespace, std::nullopt);
  // What is missing is missing all the same.
  EXPECT_TRUE(
      HasError(Configure({}, R"({"endpoint":"<unknown>"})").diagnostics, "token", "SLESS_TOKEN"));
}

TEST(ProviderConfigure, WrongValues) {
  EXPECT_TRUE(HasError(Configure({"http://a", "b", "No_Label"}, "{}").diagnostics, "namespace",
                       "SLESS_NAMESPACE"));
  EXPECT_TRUE(HasError(Configure(kFull, R"({"ca_file":"/no/such/file.pem"})").diagnostics,
                       "ca_file", "/no/such/file.pem"));
  EXPECT_TRUE(HasError(Configure(kFull, R"({"ca_file":"/proc/version"})").diagnostics, "ca_file",
                       "no certificate in PEM form"));
  // A real client refuses them, also from the environment where no validator sees them.
  base::NullLogger log;
  base::SystemClock clock;
  const auto refuses = [&](Environment environment, const char* path, const char* variable) {
    framework::ConfigureResponse response;
    const auto provider = MakeProvider(std::move(environment));
    const auto config = cty::NullObject(framework::ImpliedType(provider->Schema()));
    provider->Configure({{}, log, clock, "", config, {}}, response);
    EXPECT_TRUE(HasError(response.diagnostics, path, variable)) << response.diagnostics.ToString();
    EXPECT_EQ(response.diagnostics.ToString().find("secret-token"), std::string::npos);
  };
  refuses({"nonsense", "secret-token", ""}, "endpoint", "SLESS_ENDPOINT");
  refuses({"http://a", "secret-token\n", ""}, "token", "SLESS_TOKEN");
}

TEST(ProviderValidate, Table) {
  const struct {
    const char* config;
    const char* path;
    const char* text;
  } rows[] = {
      {R"({"endpoint":"sless.test"})", "endpoint", "must be a URL"},
      {R"({"endpoint":"ftp://x"})", "endpoint", "must be a URL"},
      {R"({"endpoint":""})", "endpoint", "must be a URL"},
      {R"({"token":""})", "token", "must not be empty"},
      {R"({"namespace":"A"})", "namespace", "only a-z"},
      {R"({"ca_file":""})", "ca_file", "must not be empty"},
      {R"({"request_timeout_sec":0})", "request_timeout_sec", "between 1 and 3600"},
      {R"({"max_retries":-1})", "max_retries", "between 0 and 20"},
  };
  base::SystemClock clock;
  framework::engine::Engine engine(MakeProvider(), clock);
  for (const auto& row : rows) {
    const auto config = cty::DecodeJson(row.config, engine.catalog().provider_type());
    ASSERT_TRUE(config.has_value());
    const auto diagnostics = framework::engine::ValidateProvider(engine, *config);
    EXPECT_TRUE(HasError(diagnostics, row.path, row.text))
        << row.config << ": " << diagnostics.ToString();
  }
}

TEST(ProviderSchema, KeepsTheHostsRules) {
  const auto provider = MakeProvider();
  for (const auto& breach :
       framework::ValidateSchema(provider->Schema(), framework::SchemaUse::kProvider))
    ADD_FAILURE() << breach;
}

}  // namespace
}  // namespace sless::provider
