#include "client/base/spawn.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "client/base/fd.h"
#include "client/base/testing/result_matchers.h"

namespace sless::base {
namespace {

TEST(Spawn, RunsAProgramAndTellsHowItEnded) {
  SystemClock clock;
  SpawnOptions options;
  options.command = {"/bin/sh", "-c", "echo out; echo err >&2; exit 3"};
  const auto output = RunCommand(options, Deadline::After(clock, std::chrono::seconds(10)), clock);
  ASSERT_THAT(output, IsOk());
  EXPECT_EQ(output->text, "out\nerr\n");
  EXPECT_EQ(output->exit.Text(), "ended with exit code 3");
}

TEST(Spawn, SaysWhichStepFailed) {
  SpawnOptions options;
  options.command = {"/no/such/program"};
  EXPECT_THAT(Spawn(options),
              IsError(Code::kInternal, testing::HasSubstr("executing it: No such")));
  options.command = {"/bin/true"};
  options.directory = "/no/such/folder";
  EXPECT_THAT(Spawn(options), IsError(Code::kInternal, testing::HasSubstr("/no/such/folder")));
}

// The child has no descriptor left even to move the one by which it reports.
TEST(Spawn, AChildWithoutDescriptorsIsNoSuccess) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  {
    std::vector<Fd> taken;  // all numbers up to 40
    for (int fd = 0; fd < 40;) {
      fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
      ASSERT_GE(fd, 0);
      taken.emplace_back(fd);
    }
    const rlimit low{static_cast<rlim_t>(taken.back().get()) + 1, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (size_t i = 0; i < 4; ++i) taken[i] = Fd();  // for ours
    SpawnOptions options;
    options.command = {"/bin/true"};
    options.fds = {{1, 20}};
    EXPECT_THAT(Spawn(options),
                IsError(Code::kResourceExhausted, testing::HasSubstr("passing its descriptors")));
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST(Errno, WhatGoesLaterIsToldApart) {
  for (const int number : {EAGAIN, ENOMEM, EMFILE, ENFILE, ENOSPC, EDQUOT})
    EXPECT_EQ(ErrnoCode(number, Code::kInternal), Code::kResourceExhausted) << number;
  EXPECT_EQ(ErrnoCode(EACCES, Code::kInternal), Code::kInternal);
  EXPECT_EQ(SystemError("x", Code::kUnavailable, EACCES).value().message, "x: Permission denied");
}

}  // namespace
}  // namespace sless::base
