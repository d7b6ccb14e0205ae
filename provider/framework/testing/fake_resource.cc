#include "provider/framework/testing/fake_resource.h"

#include <atomic>

namespace sless::framework::testing {
namespace {

// Never the same twice, so that no decided value coincides with another one or with a configured
// one by chance.
int64_t NextNumber() {
  static std::atomic<int64_t> last = 1000;
  return ++last;
}

class Decider {
 public:
  cty::Value Decide(const cty::Type& type, const cty::Value& value) {
    if (value.IsUnknown()) return Fresh(type);
    if (value.IsWhollyKnown()) return value;
    using Kind = cty::Value::Kind;
    if (value.kind() == Kind::kObject || value.kind() == Kind::kMap) {
      cty::Value::Members members;
      for (const auto& [key, part] : value.AsMap()) {
        const bool object = type.IsObject();
        members.emplace(
            key, Decide(object ? type.attributes().find(key)->second : type.element(), part));
      }
      return value.kind() == Kind::kMap ? cty::Value::Map(std::move(members))
                                        : cty::Value::Object(std::move(members));
    }
    cty::Value::Elements items;
    for (const auto& part : value.AsList()) items.push_back(Decide(type.element(), part));
    return value.kind() == Kind::kSet ? cty::Value::Set(std::move(items))
                                      : cty::Value::List(std::move(items));
  }

 private:
  cty::Value Fresh(const cty::Type& type) {
    using Kind = cty::Type::Kind;
    switch (type.kind()) {
      case Kind::kString:
      case Kind::kDynamic:
        return cty::Value::String("computed-" + std::to_string(NextNumber()));
      case Kind::kNumber:
        return cty::Value::Int(NextNumber());
      case Kind::kBool:
        return cty::Value::Bool(true);
      case Kind::kList:
        return cty::Value::List({Fresh(type.element())});
      case Kind::kSet:
        return cty::Value::Set({Fresh(type.element())});
      case Kind::kMap:
        return cty::Value::Map({{"computed", Fresh(type.element())}});
      case Kind::kObject:
        break;
      case Kind::kTuple:
        return cty::Value::Null();
    }
    cty::Value::Members members;
    for (const auto& [name, part] : type.attributes()) members.emplace(name, Fresh(part));
    return cty::Value::Object(std::move(members));
  }
};

}  // namespace

cty::Value DecideUnknowns(const cty::Type& type, const cty::Value& plan) {
  return Decider().Decide(type, plan);
}

void FakeResource::Create(const ChangeRequest& request, StateResponse& response) const {
  if (hooks_.create) return hooks_.create(request, response);
  response.state = DecideUnknowns(ImpliedType(hooks_.schema), request.plan);
}
void FakeResource::Read(const ReadRequest& request, StateResponse& response) const {
  if (hooks_.read) hooks_.read(request, response);
}
void FakeResource::Update(const ChangeRequest& request, StateResponse& response) const {
  if (hooks_.update) return hooks_.update(request, response);
  response.state = DecideUnknowns(ImpliedType(hooks_.schema), request.plan);
}
void FakeResource::Delete(const ChangeRequest& request, StateResponse& response) const {
  if (hooks_.remove) hooks_.remove(request, response);
}
void FakeResource::ValidateConfig(const ValidateRequest& request, Diagnostics& diagnostics) const {
  if (hooks_.validate) hooks_.validate(request, diagnostics);
}
void FakeResource::ModifyPlan(const ModifyPlanRequest& request,
                              ModifyPlanResponse& response) const {
  if (hooks_.modify_plan) hooks_.modify_plan(request, response);
}
void FakeResource::ImportState(const ImportRequest& request, StateResponse& response) const {
  if (hooks_.import) return hooks_.import(request, response);
  Resource::ImportState(request, response);
}
void FakeResource::MoveState(const MoveRequest& request, StateResponse& response) const {
  if (hooks_.move) return hooks_.move(request, response);
  Resource::MoveState(request, response);
}

std::vector<std::unique_ptr<Resource>> FakeProvider::Resources() const {
  std::vector<std::unique_ptr<Resource>> result;
  for (const auto& hooks : resources_) result.push_back(std::make_unique<FakeResource>(hooks));
  return result;
}

}  // namespace sless::framework::testing
