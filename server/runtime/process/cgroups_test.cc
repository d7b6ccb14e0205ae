#include "server/runtime/process/cgroups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "client/base/testing/result_matchers.h"

namespace sless::runtime {
namespace {

namespace fs = std::filesystem;
using base::Code;
using base::IsError;
using base::IsOk;
using testing::ElementsAre;
using testing::HasSubstr;

class Warnings : public base::Logger {
 public:
  void Log(base::Level level, std::string_view message,
           std::initializer_list<base::LogField>) override {
    if (level == base::Level::kWarn) said.emplace_back(message);
  }
  std::vector<std::string> said;
};

// A folder that looks like cgroup v2 to who reads and writes it. The kernel makes the files of a
// new cgroup; here the test does, beforehand.
class CgroupsV2 : public testing::Test {
 protected:
  CgroupsV2() {
    char name[] = "/tmp/sless-test-XXXXXX";
    top_ = mkdtemp(name);
    Write("self/mountinfo",
          "30 23 0:26 / " + top_ + "/mnt rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    Write("self/cgroup", "0::/unit.service\n");
  }
  ~CgroupsV2() override {
    std::error_code ignored;
    fs::remove_all(top_, ignored);
  }

  void Write(const std::string& file, const std::string& text = "") const {
    fs::create_directories(fs::path(top_ + "/" + file).parent_path());
    std::ofstream(top_ + "/" + file) << text;
  }
  std::string Read(const std::string& file) const {
    std::stringstream text;
    text << std::ifstream(top_ + "/" + file).rdbuf();
    return text.str();
  }
  void MakeCgroup(const std::string& folder, const std::string& controllers = "memory pids") const {
    Write(folder + "/cgroup.controllers", controllers + "\n");
    Write(folder + "/cgroup.procs");
    Write(folder + "/cgroup.subtree_control");
  }
  Cgroups Detect() { return Cgroups::Detect("sless", log_, top_ + "/self"); }

  std::string top_;
  Warnings log_;
};

TEST_F(CgroupsV2, StepsAsideAndHandsItsControllersDown) {
  MakeCgroup("mnt/unit.service", "cpu memory pids");
  MakeCgroup("mnt/unit.service/sless-server");
  MakeCgroup("mnt/unit.service/sless");
  EXPECT_TRUE(Detect().limits_memory());
  EXPECT_EQ(Read("mnt/unit.service/sless-server/cgroup.procs"), "0");
  EXPECT_EQ(Read("mnt/unit.service/cgroup.subtree_control"), "+memory +pids");
  EXPECT_EQ(Read("mnt/unit.service/sless/cgroup.subtree_control"), "+memory +pids");
  EXPECT_EQ(Read("mnt/unit.service/cgroup.procs"), "");
  EXPECT_THAT(log_.said, ElementsAre());
}

TEST_F(CgroupsV2, ReplicasGetTheirLimits) {
  MakeCgroup("mnt/unit.service");
  MakeCgroup("mnt/unit.service/sless-server");
  MakeCgroup("mnt/unit.service/sless");
  const Cgroups cgroups = Detect();
  const std::string replica = "mnt/unit.service/sless/a1-1";
  for (const char* file : {"memory.max", "memory.swap.max", "pids.max"})
    Write(replica + "/" + file);
  const auto made = cgroups.Create("a1-1", 100'000, 514);
  ASSERT_THAT(made, IsOk());
  EXPECT_EQ(Read(replica + "/memory.max"), "100000");
  EXPECT_EQ(Read(replica + "/memory.swap.max"), "0");
  EXPECT_EQ(Read(replica + "/pids.max"), "514");
  EXPECT_THAT(made->Procs(), ElementsAre(top_ + "/" + replica + "/cgroup.procs"));
  Write(replica + "/memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n");
  EXPECT_EQ(OomKills(made->events), 2);
}

TEST_F(CgroupsV2, WithoutALimitOfMemoryThereIsNoReplica) {
  MakeCgroup("mnt/unit.service");
  MakeCgroup("mnt/unit.service/sless-server");
  MakeCgroup("mnt/unit.service/sless");
  EXPECT_THAT(Detect().Create("a1-1", 100'000, 514),
              IsError(Code::kInternal, HasSubstr("memory.max: No such file")));
  EXPECT_FALSE(fs::exists(top_ + "/mnt/unit.service/sless/a1-1"));
}

// A container's view: its own cgroup is the topmost one that it sees, yet no exception to the rule.
TEST_F(CgroupsV2, StepsAsideInTheTopmostCgroupToo) {
  Write("self/cgroup", "0::/\n");
  MakeCgroup("mnt");
  MakeCgroup("mnt/sless-server");
  MakeCgroup("mnt/sless");
  EXPECT_TRUE(Detect().limits_memory());
  EXPECT_EQ(Read("mnt/sless-server/cgroup.procs"), "0");
}

// Other processes in our cgroup: the kernel refuses the controllers. We are back where we were.
TEST_F(CgroupsV2, WhereItIsNotAloneItGoesBackAndSaysSo) {
  MakeCgroup("mnt/unit.service");
  MakeCgroup("mnt/unit.service/sless-server");
  fs::remove(top_ + "/mnt/unit.service/cgroup.subtree_control");
  EXPECT_FALSE(Detect().limits_memory());
  EXPECT_EQ(Read("mnt/unit.service/cgroup.procs"), "0");
  EXPECT_THAT(log_.said, ElementsAre(HasSubstr("RLIMIT_DATA")));
}

TEST_F(CgroupsV2, WhatCannotBeEnteredIsRemoved) {
  MakeCgroup("mnt/unit.service");
  EXPECT_FALSE(Detect().limits_memory());
  EXPECT_FALSE(fs::exists(top_ + "/mnt/unit.service/sless-server"));
  EXPECT_EQ(log_.said.size(), 1U);
}

TEST_F(CgroupsV2, WithoutTheMemoryControllerNothingIsTouched) {
  MakeCgroup("mnt/unit.service", "cpu pids");
  EXPECT_FALSE(Detect().limits_memory());
  EXPECT_FALSE(fs::exists(top_ + "/mnt/unit.service/sless-server"));
  EXPECT_EQ(Read("mnt/unit.service/cgroup.procs"), "");
}

}  // namespace
}  // namespace sless::runtime
