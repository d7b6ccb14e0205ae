#include "client/base/backoff.h"

#include <algorithm>
#include <random>

namespace sless::base {

std::chrono::milliseconds Backoff::Next() {
  thread_local std::minstd_rand random{std::random_device{}()};
  const auto top = std::min(next_, max_);
  next_ = std::min(top * 2, max_);
  return std::chrono::milliseconds(
      std::uniform_int_distribution<int64_t>(top.count() / 2, top.count())(random));
}

}  // namespace sless::base
