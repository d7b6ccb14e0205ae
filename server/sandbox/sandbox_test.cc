#include "server/sandbox/sandbox.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sless::sandbox {
namespace {

// bubblewrap mounts in the order of its arguments: what comes later lies on top.
TEST(SandboxArguments, APathBelowTmpIsNotHiddenByThePrivateTmp) {
  Sandbox sandbox;
  sandbox.read_only = {"/tmp/cache/node"};
  const auto args = Arguments(sandbox);
  const auto tmp = std::find(args.begin(), args.end(), "/tmp");
  const auto node = std::find(args.begin(), args.end(), "/tmp/cache/node");
  ASSERT_NE(tmp, args.end());
  ASSERT_NE(node, args.end());
  EXPECT_LT(tmp - args.begin(), node - args.begin());
}

}  // namespace
}  // namespace sless::sandbox
