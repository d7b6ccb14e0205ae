#pragma once

// What every ObjectStore does. A driver's test includes this and writes
//   INSTANTIATE_TEST_SUITE_P(Memory, ObjectStoreConformance,
//   testing::ValuesIn(StoreDriver(MakeX)));

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/base/testing/fake_clock.h"
#include "server/store/object_store.h"

namespace sless::store {

using StoreFactory = std::function<std::unique_ptr<ObjectStore>(const base::Clock&)>;

/// `make` as the parameter of the suite. Defined beside the tests: using it is what links them in.
std::vector<StoreFactory> StoreDriver(StoreFactory make);

class ObjectStoreConformance : public testing::TestWithParam<StoreFactory> {
 protected:
  void SetUp() override { store_ = GetParam()(clock_); }

  static StoredObject Make(const std::string& kind, const std::string& ns, const std::string& name);
  /// Creates and returns it; fails the test on an error.
  StoredObject MustCreate(const std::string& kind, const std::string& ns, const std::string& name);
  /// "ns/name" of all items, page by page.
  std::string Names(ListQuery query);

  base::FakeClock clock_;
  std::unique_ptr<ObjectStore> store_;
};

}  // namespace sless::store
