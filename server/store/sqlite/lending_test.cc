#include "server/store/sqlite/lending.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>

namespace sless::store {
namespace {

TEST(Lending, WhoWaitsGetsTheFirstThatIsGivenBack) {
  int things[2] = {0, 1};
  Lending<int> lending;
  for (int& thing : things) lending.Add(thing);
  std::optional<Lending<int>::Lent> first(std::in_place, lending), second(std::in_place, lending);
  EXPECT_NE(&**first, &**second);
  for (auto* back : {&first, &second}) {  // whichever it is
    const int* want = &***back;
    auto waiting = std::async(std::launch::async, [&] {
      const Lending<int>::Lent mine(lending);
      return &*mine;
    });
    EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
    back->reset();
    ASSERT_EQ(waiting.wait_for(std::chrono::seconds(10)), std::future_status::ready);
    EXPECT_EQ(waiting.get(), want);
    back->emplace(lending);
  }
}

}  // namespace
}  // namespace sless::store
