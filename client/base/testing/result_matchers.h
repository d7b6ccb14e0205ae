#pragma once

#include <gmock/gmock.h>

#include "client/base/result.h"

namespace sless::base {

/// EXPECT_THAT(result, IsOk()).
MATCHER(IsOk, negation ? "is an error" : "is OK") {
  if (arg.has_value()) return true;
  *result_listener << "error " << ToString(arg.error());
  return false;
}
/// EXPECT_THAT(result, IsOkAndHolds(matcher)).
MATCHER_P(IsOkAndHolds, inner, "is OK and holds the value") {
  if (!arg.has_value()) {
    *result_listener << "error " << ToString(arg.error());
    return false;
  }
  return testing::ExplainMatchResult(inner, *arg, result_listener);
}
/// EXPECT_THAT(result, IsError(Code::kX, HasSubstr("text"))).
MATCHER_P2(IsError, code, message, "is that error") {
  if (arg.has_value()) {
    *result_listener << "is OK";
    return false;
  }
  *result_listener << ToString(arg.error());
  return arg.error().code == code &&
         testing::ExplainMatchResult(message, arg.error().message, result_listener);
}

}  // namespace sless::base
