// Limits of cgroups of both versions, read from a tree that the test writes.

#include "yoke/cluster/cgroup.h"

#include <gtest/gtest.h>

#include <fstream>

#include "yoke/base/files.h"

namespace yoke::cluster {
namespace {

class Cgroup : public testing::Test {
 protected:
  void write(const std::string& file, const std::string& text) const {
    const auto path = root_.path() / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  CgroupLimits limits(const std::string& membership) const {
    return cgroup_limits(membership, root_.path());
  }
  TemporaryFolder root_;
};

TEST_F(Cgroup, Version2TheTightestOnTheWayUpCounts) {
  write("cgroup.controllers", "cpu memory");
  write("job/cpu.max", "150000 100000");
  write("job/step/cpu.max", "max 100000");
  write("job/memory.max", "4294967296");
  write("job/memory.current", "1000");
  write("job/step/memory.max", "8589934592");
  const auto found = limits("0::/job/step\n");
  EXPECT_EQ(found.cores, 1.5);
  EXPECT_EQ(found.cores_file, (root_.path() / "job/cpu.max").string());
  EXPECT_EQ(found.memory, 4294967296u);
  EXPECT_EQ(found.memory_used, 1000u);
}

TEST_F(Cgroup, Version1WithOneFolderForTwoControllers) {
  write("cpu,cpuacct/docker/cpu.cfs_quota_us", "50000");
  write("cpu,cpuacct/docker/cpu.cfs_period_us", "100000");
  write("memory/docker/memory.limit_in_bytes", "2147483648");
  write("memory/docker/memory.usage_in_bytes", "77");
  const auto found = limits("4:memory:/docker\n3:cpu,cpuacct:/docker\n0::/\n");
  EXPECT_EQ(found.cores, 0.5);
  EXPECT_EQ(found.memory, 2147483648u);
  EXPECT_EQ(found.memory_used, 77u);
}

TEST_F(Cgroup, InAContainerThePathIsTheHostsAndTheRootCounts) {
  write("cpu/cpu.cfs_quota_us", "300000");
  write("cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(limits("1:cpu:/not/visible/here\n").cores, 3.0);
}

TEST_F(Cgroup, NoLimitIsNone) {
  write("cpu/cpu.cfs_quota_us", "-1");
  write("cpu/cpu.cfs_period_us", "100000");
  write("memory/memory.limit_in_bytes", "9223372036854771712");
  write("unified/cpu.max", "max 100000");
  write("unified/memory.max", "max");
  const auto found = limits("2:cpu:/\n1:memory:/\n0::/\n");
  EXPECT_FALSE(found.cores);
  EXPECT_FALSE(found.memory);
}

TEST_F(Cgroup, WhatCannotBeReadIsNoLimit) {
  EXPECT_FALSE(limits("").cores);
  EXPECT_FALSE(limits("garbage\n1:cpu\n::::\n0::/gone\n").memory);
}

}  // namespace
}  // namespace yoke::cluster
