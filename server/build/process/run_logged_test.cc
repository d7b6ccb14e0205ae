#include "server/build/process/run_logged.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "client/base/testing/result_matchers.h"

namespace sless::build {
namespace {

using base::Code;
using base::IsError;
using base::IsOk;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

base::SpawnOptions Shell(const std::string& script) {
  base::SpawnOptions options;
  options.command = {"/bin/sh", "-c", script};
  options.environment = {"PATH=/usr/bin:/bin"};
  return options;
}

TEST(RunLogged, GivesLinesAndTheExit) {
  const base::SystemClock clock;
  std::vector<std::string> lines;
  const auto exit = RunLogged(Shell("echo one; echo two >&2; printf three; exit 3"),
                              base::Deadline::After(clock, seconds(10)), clock, {},
                              [&](std::string_view line) { lines.emplace_back(line); });
  ASSERT_THAT(exit, IsOk());
  EXPECT_EQ(exit->code, 3);
  EXPECT_THAT(lines, ElementsAre("one", "two", "three"));
}

TEST(RunLogged, ADeadlineAndAStopKillTheWholeGroup) {
  const base::SystemClock clock;
  const auto begin = clock.Steady();
  EXPECT_THAT(
      RunLogged(Shell("sleep 60 & sleep 60"), base::Deadline::After(clock, milliseconds(200)),
                clock, {}, [](std::string_view) {}),
      IsError(Code::kDeadlineExceeded, testing::_));
  std::stop_source stop;
  std::thread stopper([&] {
    std::this_thread::sleep_for(milliseconds(100));
    stop.request_stop();
  });
  EXPECT_THAT(RunLogged(Shell("sleep 60 & sleep 60"), base::Deadline::After(clock, seconds(50)),
                        clock, stop.get_token(), [](std::string_view) {}),
              IsError(Code::kCancelled, testing::_));
  stopper.join();
  EXPECT_LT(clock.Steady() - begin, seconds(5));
}

}  // namespace
}  // namespace sless::build
