#include "provider/framework/engine/call.h"

#include <gmock/gmock.h>

#include "provider/framework/defaults.h"
#include "provider/framework/engine/read.h"
#include "provider/framework/testing/fake_resource.h"

namespace sless::framework {
namespace {

using cty::Value;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Client {
  std::string url;
};

class Join final : public Function {
 public:
  std::string Name() const override { return "join"; }
  FunctionDefinition Definition() const override {
    return {.parameters = {{"separator", cty::Type::String()}},
            .variadic = Parameter{.name = "parts", .type = cty::Type::String(), .allow_null = true},
            .result = cty::Type::String()};
  }
  void Call(const std::vector<Value>& arguments, FunctionResponse& response) const override {
    std::string out;
    for (size_t i = 1; i < arguments.size(); ++i) {
      if (arguments[i].AsString() == "throw") throw std::runtime_error("boom");
      if (arguments[i].AsString() == "bad") {
        response.error = FunctionError{"bad part", static_cast<int64_t>(i)};
        return;
      }
      if (i > 1) out += arguments[0].AsString();
      out += arguments[i].AsString();
    }
    response.result = out == "number" ? Int(1) : Str(out);
  }
};

class Lookup final : public DataSource {
 public:
  std::string TypeName() const override { return "fake_lookup"; }
  framework::Schema Schema() const override {
    return {.attributes = {{"name", String(), {.required = true}},
                           {"url", String(), {.computed = true}}}};
  }
  void Read(const DataRequest& request, DataResponse& response) const override {
    const auto* client = request.context.provider_data.Get<Client>();
    if (client == nullptr) return response.diagnostics.AddError("Not configured", "No client.");
    const std::string& name = request.config.Get("name").AsString();
    if (name == "unknown") response.state = response.state.With("url", Value::Unknown());
    if (name == "null") response.state = Value::Null();
    if (name == "ok") response.state = response.state.With("url", Str(client->url + name));
  }
};

class Token final : public EphemeralResource {
 public:
  std::string TypeName() const override { return "fake_token"; }
  framework::Schema Schema() const override {
    return {.attributes = {{"value", String(), {.computed = true}}}};
  }
  void Open(const EphemeralRequest& request, EphemeralResponse& response) const override {
    response.result = request.config.With("value", Str("t"));
    response.renew_at = request.context.clock.Now() + std::chrono::seconds(30);
    response.private_data.Set("id", "7");
  }
  void Renew(const EphemeralRequest& request, EphemeralResponse& response) const override {
    response.private_data.Set("renewed", request.private_data.Get("id").value_or("?"));
  }
  void Close(const EphemeralRequest& request, Diagnostics& diagnostics) const override {
    diagnostics.AddWarning("Closed", request.private_data.Get("id").value_or("?"));
  }
};

class Restart final : public Action {
 public:
  std::string TypeName() const override { return "fake_restart"; }
  framework::Schema Schema() const override {
    return {.attributes = {{"name", String(), {.required = true}}}};
  }
  void Plan(const ActionRequest& request, Diagnostics& diagnostics) const override {
    request.progress("nobody hears this");
    if (request.config.Get("name").IsUnknown()) diagnostics.AddWarning("Later", "Unknown.");
  }
  void Invoke(const ActionRequest& request, Diagnostics& diagnostics) const override {
    request.progress("half");
    if (request.config.Get("name") == Str("bad")) throw std::runtime_error("boom");
    diagnostics.AddWarning("Done", "ok");
  }
};

class Things final : public ListResource {
 public:
  std::string TypeName() const override { return "fake_thing"; }
  framework::Schema Schema() const override {
    return {.attributes = {{"mode", String(), {.optional = true}}}};
  }
  void List(const ListRequest& request,
            const std::function<bool(ListedObject)>& emit) const override {
    const std::string& mode = request.config.Get("mode").AsString();
    for (int i = 0; i < 1000; ++i) {
      ListedObject object;
      object.identity = mode == "bad" ? Str("x") : Value::Object({{"key", Str(std::to_string(i))}});
      object.object = Value::Object({{"name", Str("n")}});
      if (!emit(std::move(object))) return;
      if (mode == "throw") throw std::runtime_error("boom");
    }
  }
};

class CallTest : public ::testing::Test {
 protected:
  CallTest() {
    testing::FakeResource::Hooks hooks;
    hooks.schema.attributes = {{"name", String(), {.required = true}}};
    hooks.identity =
        IdentitySchema{.version = 0, .attributes = {{"key", cty::Type::String(), true, ""}}};
    auto provider = std::make_unique<testing::FakeProvider>(std::vector{hooks});
    provider->schema.attributes = {{"url", String(), {.required = true}}};
    provider->configure = [](const ConfigureRequest& request, ConfigureResponse& response) {
      if (request.config.Get("url") == Str("throw")) throw std::runtime_error("boom");
      response.data =
          ProviderData::Of(std::make_shared<Client>(Client{request.config.Get("url").AsString()}));
    };
    provider->functions = [] { return One<Function, Join>(); };
    provider->data_sources = [] { return One<DataSource, Lookup>(); };
    provider->ephemerals = [] { return One<EphemeralResource, Token>(); };
    provider->actions = [] { return One<Action, Restart>(); };
    provider->lists = [] { return One<ListResource, Things>(); };
    engine_ = std::make_unique<engine::Engine>(std::move(provider), clock_);
  }
  template <class Base, class T>
  static std::vector<std::unique_ptr<Base>> One() {
    std::vector<std::unique_ptr<Base>> list;
    list.push_back(std::make_unique<T>());
    return list;
  }
  engine::Call call() { return {{}, log_}; }
  Diagnostics Configure(const char* url) {
    return engine_->Configure(call(), "1.11.0", Value::Object({{"url", Str(url)}}), {});
  }

  base::SystemClock clock_;
  base::NullLogger log_;
  std::unique_ptr<engine::Engine> engine_;
};

TEST_F(CallTest, CatalogIsComplete) {
  const auto& catalog = engine_->catalog();
  EXPECT_THAT(catalog.Check(), IsEmpty());
  EXPECT_THAT(catalog.ResourceNames(), ElementsAre("fake_thing"));
  EXPECT_THAT(catalog.FunctionNames(), ElementsAre("join"));
  EXPECT_THAT(catalog.DataSourceNames(), ElementsAre("fake_lookup"));
  EXPECT_THAT(catalog.EphemeralNames(), ElementsAre("fake_token"));
  EXPECT_THAT(catalog.ActionNames(), ElementsAre("fake_restart"));
  EXPECT_THAT(catalog.ListNames(), ElementsAre("fake_thing"));
  EXPECT_EQ(catalog.FindResource("fake_thin"), nullptr);
  EXPECT_EQ(catalog.FindResource("fake_thing"), catalog.FindResource("fake_thing"));
  EXPECT_THAT(engine::UnknownType("resource", "fake_thin", catalog.ResourceNames()).detail,
              HasSubstr("Did you mean \"fake_thing\"?"));
}

TEST_F(CallTest, CatalogReportsDoubles) {
  testing::FakeResource::Hooks hooks;
  hooks.schema.attributes = {{"count", String(), {}}};
  const testing::FakeProvider provider({hooks, hooks});
  const engine::Catalog catalog(provider);
  EXPECT_THAT(catalog.Check(), ElementsAre(HasSubstr("reserved"), HasSubstr("must be required"),
                                           HasSubstr("declared twice")));
}

TEST_F(CallTest, Functions) {
  const auto* join = engine_->catalog().FindFunction("join");
  const auto run = [&](std::vector<Value> arguments) {
    return engine::CallFunction(*join, arguments);
  };
  EXPECT_EQ(run({Str("-"), Str("a"), Str("b")}).result, Str("a-b"));
  EXPECT_EQ(run({Str("-")}).result, Str(""));
  EXPECT_EQ(run({Str("-"), Value::Null()}).result, Str(""));
  EXPECT_EQ(run({Value::Null()}).error->argument, 0);
  EXPECT_EQ(run({Str("-"), Value::Unknown()}).error->argument, 1);
  EXPECT_THAT(run({}).error->text, HasSubstr("takes 1 arguments"));
  EXPECT_EQ(run({Str("-"), Str("a"), Str("bad")}).error->argument, 2);
  EXPECT_THAT(run({Str("-"), Str("throw")}).error->text, HasSubstr("boom"));
  EXPECT_THAT(run({Str("-"), Str("number")}).error->text, HasSubstr("does not fit"));
  EXPECT_EQ(*engine::ArgumentType(*join, 9), cty::Type::String());
}

TEST_F(CallTest, DataSourcesSeeTheConfiguredClient) {
  const auto* lookup = engine_->catalog().FindDataSource("fake_lookup");
  const auto read = [&](const char* name) {
    return engine::ReadData(*engine_, call(), *lookup,
                            Value::Object({{"name", Str(name)}, {"url", Value::Null()}}));
  };
  EXPECT_THAT(read("ok").diagnostics.ToString(), HasSubstr("Not configured"));
  EXPECT_THAT(Configure("throw").ToString(), HasSubstr("boom"));
  EXPECT_TRUE(Configure("u/").empty());
  EXPECT_EQ(read("ok").state.Get("url"), Str("u/ok"));
  EXPECT_THAT(read("unknown").diagnostics.ToString(), HasSubstr("cannot be used"));
  EXPECT_THAT(read("null").diagnostics.ToString(), HasSubstr("cannot be used"));
  EXPECT_EQ(engine_->MakeContext(call()).terraform_version, "1.11.0");
  EXPECT_EQ(engine_->MakeContext(call()).provider_data.Get<int>(), nullptr);
}

TEST_F(CallTest, EphemeralResources) {
  const auto* token = engine_->catalog().FindEphemeral("fake_token");
  const auto open =
      engine::OpenEphemeral(*engine_, call(), *token, Value::Object({{"value", Value::Null()}}));
  EXPECT_EQ(open.result.Get("value"), Str("t"));
  EXPECT_TRUE(open.renew_at.has_value());
  const auto renew = engine::RenewEphemeral(*engine_, call(), *token, open.private_data);
  EXPECT_EQ(PrivateData::Decode(renew.private_data).Get("renewed"), "7");
  EXPECT_FALSE(renew.renew_at.has_value());
  EXPECT_EQ(engine::CloseEphemeral(*engine_, call(), *token, open.private_data).ToString(),
            "warning: Closed: 7");
}

TEST_F(CallTest, Actions) {
  const auto* restart = engine_->catalog().FindAction("fake_restart");
  const auto config = [](Value name) { return Value::Object({{"name", std::move(name)}}); };
  EXPECT_EQ(engine::PlanAction(*engine_, call(), *restart, config(Value::Unknown())).ToString(),
            "warning: Later: Unknown.");
  std::vector<std::string> lines;
  const auto progress = [&](std::string_view line) { lines.emplace_back(line); };
  EXPECT_EQ(engine::InvokeAction(*engine_, call(), *restart, config(Str("x")), progress).ToString(),
            "warning: Done: ok");
  EXPECT_THAT(
      engine::InvokeAction(*engine_, call(), *restart, config(Str("bad")), progress).ToString(),
      HasSubstr("boom"));
  EXPECT_THAT(lines, ElementsAre("half", "half"));
}

TEST_F(CallTest, Lists) {
  const auto* list = engine_->catalog().FindList("fake_thing");
  const auto* resource = engine_->catalog().FindResource("fake_thing");
  const auto run = [&](const char* mode, bool include, int64_t limit) {
    std::vector<ListedObject> events;
    engine::ListObjects(*engine_, call(), *list, *resource,
                        {Value::Object({{"mode", Str(mode)}}), include, limit},
                        [&](ListedObject event) {
                          events.push_back(std::move(event));
                          return true;
                        });
    return events;
  };
  EXPECT_EQ(run("", false, 3).size(), 3u);
  EXPECT_TRUE(run("", false, 1)[0].object.IsNull());
  EXPECT_FALSE(run("", true, 1)[0].object.IsNull());
  EXPECT_EQ(run("", false, 0).size(), 100u);
  EXPECT_EQ(run("bad", false, 9).size(), 1u);
  const auto thrown = run("throw", false, 9);
  ASSERT_EQ(thrown.size(), 2u);
  EXPECT_THAT(thrown[1].diagnostics.ToString(), HasSubstr("boom"));
}

}  // namespace
}  // namespace sless::framework
