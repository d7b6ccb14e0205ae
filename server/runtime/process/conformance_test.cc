#include <gmock/gmock.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "client/base/log.h"
#include "client/base/testing/result_matchers.h"
#include "server/runtime/process/process_runtime.h"
#include "server/runtime/testing/runtime_conformance.h"

namespace sless::runtime {
namespace {

class ProcessUnderTest final : public RuntimeUnderTest {
 public:
  ProcessUnderTest() {
    char name[] = "/tmp/sless-test-XXXXXX";
    dir_ = mkdtemp(name);
    ProcessOptions options;
    options.state_dir = dir_ + "/runtime";
    options.runner = SLESS_RUNNER;
    options.runtimes_dir = SLESS_RUNTIMES;
    options.path = getenv("PATH");
    options.grace = std::chrono::seconds(5);
    options.first_backoff = std::chrono::milliseconds(100);
    auto made = MakeProcessRuntime(options, clock_, log_, {});
    EXPECT_THAT(made, base::IsOk());
    if (made) runtime_ = std::move(*made);
  }
  ~ProcessUnderTest() override {
    runtime_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(dir_, ignored);
  }

  Runtime& runtime() override { return *runtime_; }
  ReplicaSpec Good() override { return Python("good", "def handle(event):\n    return 1\n"); }
  ReplicaSpec Broken() override {
    return Python("broken", "raise ValueError('broken at start')\n");
  }

 private:
  ReplicaSpec Python(const std::string& name, const std::string& code) {
    ReplicaSpec spec;
    spec.runtime = "python3.11";
    spec.entrypoint = "handler.handle";
    spec.code_dir = dir_ + "/" + name;
    std::filesystem::create_directories(spec.code_dir);
    std::ofstream(spec.code_dir + "/handler.py") << code;
    return spec;
  }

  std::string dir_;
  base::SystemClock clock_;
  base::NullLogger log_;
  std::unique_ptr<Runtime> runtime_;
};

INSTANTIATE_TEST_SUITE_P(Process, RuntimeConformance, testing::ValuesIn(RuntimeDriver([] {
                           return std::make_unique<ProcessUnderTest>();
                         })));

}  // namespace
}  // namespace sless::runtime
