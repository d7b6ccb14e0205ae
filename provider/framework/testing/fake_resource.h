#pragma once

// A resource, and a provider, made of lambdas, for tests.

#include <functional>
#include <memory>
#include <vector>

#include "provider/framework/engine/engine.h"
#include "provider/framework/provider.h"

namespace sless::framework::testing {

/// Each hook that is not set does what a well-behaved resource over an obedient server does: create
/// and update store the plan with the unknown parts decided (DecideUnknowns), read returns the
/// state, delete succeeds.
class FakeResource : public Resource {
 public:
  struct Hooks {
    std::string type_name = "fake_thing";
    framework::Schema schema;
    std::optional<IdentitySchema> identity;
    std::vector<StateUpgrader> upgraders;
    std::function<void(const ChangeRequest&, StateResponse&)> create;
    std::function<void(const ReadRequest&, StateResponse&)> read;
    std::function<void(const ChangeRequest&, StateResponse&)> update;
    std::function<void(const ChangeRequest&, StateResponse&)> remove;
    std::function<void(const ValidateRequest&, Diagnostics&)> validate;
    std::function<void(const ModifyPlanRequest&, ModifyPlanResponse&)> modify_plan;
    std::function<void(const ImportRequest&, StateResponse&)> import;
    std::function<void(const MoveRequest&, StateResponse&)> move;
  };
  explicit FakeResource(Hooks hooks) : hooks_(std::move(hooks)) {}

  std::string TypeName() const override { return hooks_.type_name; }
  framework::Schema Schema() const override { return hooks_.schema; }
  void Create(const ChangeRequest& request, StateResponse& response) const override;
  void Read(const ReadRequest& request, StateResponse& response) const override;
  void Update(const ChangeRequest& request, StateResponse& response) const override;
  void Delete(const ChangeRequest& request, StateResponse& response) const override;
  void ValidateConfig(const ValidateRequest& request, Diagnostics& diagnostics) const override;
  void ModifyPlan(const ModifyPlanRequest& request, ModifyPlanResponse& response) const override;
  void ImportState(const ImportRequest& request, StateResponse& response) const override;
  void MoveState(const MoveRequest& request, StateResponse& response) const override;
  std::vector<StateUpgrader> StateUpgraders() const override { return hooks_.upgraders; }
  std::optional<IdentitySchema> Identity() const override { return hooks_.identity; }

 private:
  Hooks hooks_;
};

/// `plan` with every unknown decided: "computed-N" for strings, N for numbers (N never the same
/// twice), true, containers of one such element.
cty::Value DecideUnknowns(const cty::Type& type, const cty::Value& plan);

/// A provider of fake resources; everything else may be added through the members before it is
/// used.
class FakeProvider : public Provider {
 public:
  explicit FakeProvider(std::vector<FakeResource::Hooks> resources = {})
      : resources_(std::move(resources)) {}
  framework::Schema schema;
  std::function<void(const ConfigureRequest&, ConfigureResponse&)> configure;
  std::function<std::vector<std::unique_ptr<DataSource>>()> data_sources;
  std::function<std::vector<std::unique_ptr<Function>>()> functions;
  std::function<std::vector<std::unique_ptr<EphemeralResource>>()> ephemerals;
  std::function<std::vector<std::unique_ptr<Action>>()> actions;
  std::function<std::vector<std::unique_ptr<ListResource>>()> lists;

  framework::Schema Schema() const override { return schema; }
  void Configure(const ConfigureRequest& request, ConfigureResponse& response) const override {
    if (configure) configure(request, response);
  }
  std::vector<std::unique_ptr<Resource>> Resources() const override;
  std::vector<std::unique_ptr<DataSource>> DataSources() const override {
    return Call(data_sources);
  }
  std::vector<std::unique_ptr<Function>> Functions() const override { return Call(functions); }
  std::vector<std::unique_ptr<EphemeralResource>> EphemeralResources() const override {
    return Call(ephemerals);
  }
  std::vector<std::unique_ptr<Action>> Actions() const override { return Call(actions); }
  std::vector<std::unique_ptr<ListResource>> ListResources() const override { return Call(lists); }

 private:
  template <class T>
  static std::vector<std::unique_ptr<T>> Call(
      const std::function<std::vector<std::unique_ptr<T>>()>& make) {
    return make ? make() : std::vector<std::unique_ptr<T>>();
  }
  std::vector<FakeResource::Hooks> resources_;
};

}  // namespace sless::framework::testing
