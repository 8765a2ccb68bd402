// The facts of the machine that the test runs on, against what other sources say of it.

#include "yoke/cluster/machine_facts.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "yoke/base/files.h"
#include "yoke/cluster/try_machine.h"

namespace yoke::cluster {
namespace {

namespace fs = std::filesystem;

/// Runs in a child that may spoil its own surroundings; true if `holds` does there.
bool in_a_child(const std::function<bool()>& holds) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(holds() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Machine, FactsAgreeWithTheSystem) {
  const auto facts = look_at_this_machine();
  EXPECT_EQ(facts.cores.allowed, static_cast<int>(std::thread::hardware_concurrency()));
  EXPECT_GE(facts.cores.online, facts.cores.allowed);
  const auto pages = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES));
  EXPECT_NEAR(static_cast<double>(facts.memory.total),
              static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)), 1e8);
  EXPECT_GT(facts.memory.available, 0u);
  EXPECT_LE(facts.memory.available, facts.memory.total);
  EXPECT_EQ(facts.sharing.memfd_problem, "");
  EXPECT_EQ(facts.sharing.peer_problem, "");
  EXPECT_EQ(facts.network.loopback_problem, "");
  EXPECT_EQ(facts.disk.problem, "");
  EXPECT_EQ(facts.disk.written, std::uint64_t{16} << 20);
  EXPECT_GT(facts.disk.seconds, 0);
  EXPECT_EQ(facts.disk.folder, fs::current_path());
  EXPECT_LT(std::abs(facts.clocks.drift), 0.05);
}

TEST(Machine, LooksAtItsOwnLimits) {
  EXPECT_TRUE(in_a_child([] {
    const rlimit few{.rlim_cur = 77, .rlim_max = 100};
    ::setrlimit(RLIMIT_NOFILE, &few);
    cpu_set_t one;
    CPU_ZERO(&one);
    cpu_set_t mine;
    ::sched_getaffinity(0, sizeof mine, &mine);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &mine)) continue;
      CPU_SET(cpu, &one);
      break;
    }
    ::sched_setaffinity(0, sizeof one, &one);
    const auto facts = look_at_this_machine();
    return facts.limits.open_files == 77u && facts.cores.allowed == 1;
  }));
}

TEST(Machine, WithoutDescriptorsMemfdSaysSo) {
  EXPECT_TRUE(in_a_child([] {
    const rlimit none{.rlim_cur = 0, .rlim_max = 0};
    ::setrlimit(RLIMIT_NOFILE, &none);
    return try_memfd().find("Too many open files") != std::string::npos;
  }));
}

TEST(Machine, AFolderThatTakesNoFilesIsNamed) {
  EXPECT_TRUE(in_a_child([] {
    fs::current_path("/proc");
    return try_disk().problem.find("file in /proc") != std::string::npos;
  }));
}

TEST(Machine, AFileThatMayNotGrowIsAProblemOfTheDisk) {
  EXPECT_TRUE(in_a_child([] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{.rlim_cur = 1 << 20, .rlim_max = 1 << 20};
    ::setrlimit(RLIMIT_FSIZE, &small);
    return try_disk().problem.find("cannot write") != std::string::npos;
  }));
}

TEST(Machine, TrialsLeaveNothing) {
  const TemporaryFolder folder;
  const auto here = fs::current_path();
  const auto descriptors = [] {
    return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
  };
  const auto before = descriptors();
  fs::current_path(folder.path());
  look_at_this_machine();
  fs::current_path(here);
  EXPECT_TRUE(fs::is_empty(folder.path()));
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

}  // namespace
}  // namespace yoke::cluster
