#pragma once

// What every Runtime does. A driver's test includes this and writes
//   INSTANTIATE_TEST_SUITE_P(X, RuntimeConformance, testing::ValuesIn(RuntimeDriver(…)));

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client/base/guarded.h"
#include "server/runtime/runtime.h"

namespace sless::runtime {

/// One runtime with nothing running, and specs for it.
class RuntimeUnderTest {
 public:
  virtual ~RuntimeUnderTest() = default;
  virtual Runtime& runtime() = 0;
  /// A spec whose replicas become ready.
  virtual ReplicaSpec Good() = 0;
  /// A spec whose replicas cannot start. After this call only such specs are used.
  virtual ReplicaSpec Broken() = 0;
};
using RuntimeFactory = std::function<std::unique_ptr<RuntimeUnderTest>()>;

/// `make` as the parameter of the suite. Defined beside the tests: using it is what links them in.
std::vector<RuntimeFactory> RuntimeDriver(RuntimeFactory make);

class RuntimeConformance : public testing::TestWithParam<RuntimeFactory> {
 protected:
  void SetUp() override;
  void TearDown() override;

  static RevisionKey Key(int64_t revision) { return {"default", "f", revision}; }
  Runtime& runtime() { return under_test_->runtime(); }
  /// Ids of the replicas in this state.
  std::set<std::string> Ids(const RevisionKey& key, ReplicaState state);
  /// Waits until `done` (at most 30 s). False: it never was.
  bool Eventually(const std::function<bool()>& done);
  bool EventuallyReady(const RevisionKey& key, size_t count);

  std::unique_ptr<RuntimeUnderTest> under_test_;
  base::Guarded<std::map<RevisionKey, int>> changes_;
  base::SystemClock clock_;
};

}  // namespace sless::runtime
