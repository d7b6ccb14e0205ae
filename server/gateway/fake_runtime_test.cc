// The gateway's tests stand on the fake runtime: it keeps the same promises as a real one.
#include "server/gateway/testing/fake_runtime.h"

#include "server/runtime/testing/runtime_conformance.h"

namespace sless::gateway {
namespace {

class FakeUnderTest final : public runtime::RuntimeUnderTest {
 public:
  runtime::Runtime& runtime() override { return fake_; }
  runtime::ReplicaSpec Good() override { return {.code_dir = "/code"}; }
  runtime::ReplicaSpec Broken() override {
    fake_.fail_start = true;
    return {};
  }

 private:
  FakeRuntime fake_;
};

}  // namespace
}  // namespace sless::gateway

namespace sless::runtime {

INSTANTIATE_TEST_SUITE_P(Fake, RuntimeConformance, testing::ValuesIn(RuntimeDriver([] {
                           return std::make_unique<gateway::FakeUnderTest>();
                         })));

}  // namespace sless::runtime
