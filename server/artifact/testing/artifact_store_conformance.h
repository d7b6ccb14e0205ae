#pragma once

// What every ArtifactStore does. A driver's test includes this and writes
//   INSTANTIATE_TEST_SUITE_P(X, ArtifactStoreConformance, testing::ValuesIn(ArtifactDriver(…)));

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/artifact/artifact_store.h"

namespace sless::artifact {

/// Makes an empty store with at most kConformanceLimit bytes for each artifact.
using ArtifactFactory = std::function<std::unique_ptr<ArtifactStore>()>;
inline constexpr uint64_t kConformanceLimit = 1 << 20;

/// `make` as the parameter of the suite. Defined beside the tests: using it is what links them in.
std::vector<ArtifactFactory> ArtifactDriver(ArtifactFactory make);

class ArtifactStoreConformance : public testing::TestWithParam<ArtifactFactory> {
 protected:
  void SetUp() override { store_ = GetParam()(); }
  /// "sha256:" and 64 times `c`.
  static std::string Digest(char c) { return "sha256:" + std::string(64, c); }
  base::Status Put(const std::string& ns, const std::string& digest, std::string_view bytes);
  std::string Contents(const std::string& ns, const std::string& digest);
  std::unique_ptr<ArtifactStore> store_;
};

}  // namespace sless::artifact
