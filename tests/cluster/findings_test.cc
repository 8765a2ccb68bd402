// What facts that the test makes up mean: one bad thing at a time.

#include "yoke/cluster/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace yoke::cluster {
namespace {

using testing::HasSubstr;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

/// A machine without fault.
MachineFacts good() {
  MachineFacts facts;
  facts.build = {.yoke = "1.2.3",
                 .type = "Release",
                 .compiler = "g++ 12",
                 .libtorch = "2.15.0",
                 .library = "/lib/libtorch_cpu.so",
                 .capability = "AVX512",
                 .blas = "mkl"};
  facts.allocator = {.name = "glibc 2.36 malloc"};
  facts.cores = {.online = 8, .allowed = 8};
  facts.memory = {.total = 16 * kGiB, .available = 12 * kGiB};
  facts.sharing.dev_shm_bytes = 8 * kGiB;
  facts.limits.open_files = 20'000;
  facts.limits.core_bytes = 0;
  facts.network = {.loopback_problem = "", .interface = "eth0", .address = "10.0.0.7"};
  facts.clocks = {.drift = 1e-6, .watched = 0.1, .synchronized = true};
  facts.disk = {.folder = "/home/ann",
                .problem = "",
                .written = 16 * kMiB,
                .free = 90 * kGiB,
                .seconds = 0.1};
  return facts;
}

TEST(Findings, AGoodMachinePassesEveryCheckAndNeedsNoAdvice) {
  const auto findings = findings_of(good());
  EXPECT_EQ(findings.size(), 15u);
  for (const auto& finding : findings) {
    EXPECT_EQ(finding.verdict, Verdict::kPass) << finding.check;
    EXPECT_EQ(finding.advice, "") << finding.check;
    EXPECT_NE(finding.found, "") << finding.check;
  }
}

struct Case {
  std::string name;
  std::function<void(MachineFacts&)> spoil;
  std::string check;
  Verdict verdict;
  std::string found;   ///< part of what is found
  std::string advice;  ///< part of it
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

class Spoiled : public testing::TestWithParam<Case> {};

TEST_P(Spoiled, IsFoundAndNothingElseIs) {
  auto facts = good();
  GetParam().spoil(facts);
  for (const auto& finding : findings_of(facts)) {
    if (finding.check != GetParam().check) {
      EXPECT_EQ(finding.verdict, Verdict::kPass) << finding.check;
      continue;
    }
    EXPECT_EQ(finding.verdict, GetParam().verdict);
    EXPECT_THAT(finding.found, HasSubstr(GetParam().found));
    EXPECT_THAT(finding.advice, HasSubstr(GetParam().advice));
    EXPECT_EQ(finding.advice.empty(), finding.verdict == Verdict::kPass);
  }
}

constexpr auto kPass = Verdict::kPass;
constexpr auto kWarn = Verdict::kWarn;
constexpr auto kFail = Verdict::kFail;

INSTANTIATE_TEST_SUITE_P(
    Findings, Spoiled,
    testing::Values(
        Case{"DebugBuild", [](auto& f) { f.build.type = "Debug"; }, "build", kWarn, "Debug",
             "CMAKE_BUILD_TYPE"},
        Case{"NoVectors", [](auto& f) { f.build.capability = "DEFAULT"; }, "libtorch", kWarn,
             "DEFAULT", "ATEN_CPU_CAPABILITY"},
        Case{"NoBlas", [](auto& f) { f.build.blas = ""; }, "libtorch", kWarn, "matrix", "MKL"},
        Case{"Thresholds", [](auto& f) { f.allocator.keeps_freed_memory = false; }, "allocator",
             kWarn, "glibc", "MALLOC_"},
        Case{"Affinity", [](auto& f) { f.cores.allowed = 2; }, "cores", kPass, "2 of 8", ""},
        Case{"Quota",
             [](auto& f) {
               f.cgroup.cores = 2.5;
               f.cgroup.cores_file = "/sys/fs/cgroup/cpu.max";
             },
             "cores", kWarn, "2.5 (/sys/fs/cgroup/cpu.max)", "exceed 2"},
        Case{"QuotaBelowOne", [](auto& f) { f.cgroup.cores = 0.5; }, "cores", kWarn, "0.5",
             "exceed 1"},
        Case{"QuotaOfAll", [](auto& f) { f.cgroup.cores = 8; }, "cores", kPass, "8 of 8", ""},
        Case{"LittleMemory", [](auto& f) { f.memory.available = kGiB; }, "memory", kWarn, "1.0 GiB",
             "few workers"},
        Case{"NoMemory", [](auto& f) { f.memory.available = 300 * kMiB; }, "memory", kFail,
             "300 MiB", "End other programs"},
        Case{"CgroupIsFull",
             [](auto& f) {
               f.cgroup.memory = 2 * kGiB;
               f.cgroup.memory_used = 2 * kGiB - 100 * kMiB;
               f.cgroup.memory_file = "memory.max";
             },
             "memory", kFail, "100 MiB of 2.0 GiB left in the cgroup (memory.max)", "raise"},
        Case{"CgroupIsWide", [](auto& f) { f.cgroup.memory = 1000 * kGiB; }, "memory", kPass, "12",
             ""},
        Case{"NoMemfd", [](auto& f) { f.sharing.memfd_problem = "memfd_create failed: EPERM"; },
             "shared memory", kFail, "EPERM", "--transport tcp"},
        Case{"HiddenPeers", [](auto& f) { f.sharing.peer_problem = "cannot open /proc/7/fd/3"; },
             "shared memory", kFail, "/proc/7/fd/3", "hidepid"},
        Case{"SmallShm", [](auto& f) { f.sharing.dev_shm_bytes = 8 * kMiB; }, "/dev/shm", kWarn,
             "8.0 MiB", "--shm-size"},
        Case{"NoShm", [](auto& f) { f.sharing.dev_shm_bytes.reset(); }, "/dev/shm", kPass,
             "not there", ""},
        Case{"FewFiles", [](auto& f) { f.limits.open_files = 256; }, "open files", kWarn, "256",
             "ulimit -n"},
        Case{"NoFiles", [](auto& f) { f.limits.open_files = 32; }, "open files", kFail, "32",
             "ulimit -n"},
        Case{"FewProcesses", [](auto& f) { f.limits.processes = 100; }, "processes", kWarn, "100",
             "ulimit -u"},
        Case{"NoProcesses", [](auto& f) { f.limits.processes = 5; }, "processes", kFail, "5",
             "ulimit -u"},
        Case{"AddressSpace", [](auto& f) { f.limits.address_space = 8 * kGiB; }, "address space",
             kWarn, "8.0 GiB", "ulimit -v"},
        Case{"NoAddressSpace", [](auto& f) { f.limits.address_space = kGiB; }, "address space",
             kFail, "1.0 GiB", "ulimit -v"},
        Case{"CoreFiles", [](auto& f) { f.limits.core_bytes.reset(); }, "core files", kPass,
             "unlimited", ""},
        Case{"NoLoopback", [](auto& f) { f.network.loopback_problem = "bind: no such device"; },
             "loopback", kFail, "no such device", "ip link set lo up"},
        Case{"NoRoute", [](auto& f) { f.network.interface = ""; }, "interface", kPass,
             "no default route", ""},
        Case{"ClockJumps", [](auto& f) { f.clocks.drift = -3; }, "clock", kWarn, "jumped by -3000",
             "time service"},
        Case{"NoNtp", [](auto& f) { f.clocks.synchronized = false; }, "clock", kWarn, "NTP",
             "chrony"},
        Case{"NtpUnknown", [](auto& f) { f.clocks.synchronized.reset(); }, "clock", kPass, "steady",
             ""},
        Case{"ReadOnly", [](auto& f) { f.disk.problem = "cannot make a file in /x: Read-only"; },
             "disk", kFail, "Read-only", "--run"},
        Case{"SlowDisk", [](auto& f) { f.disk.seconds = 4; }, "disk", kWarn, "4.2 MB/s",
             "train.checkpoint_every"},
        Case{"FullDisk", [](auto& f) { f.disk.free = 100 * kMiB; }, "disk", kWarn, "100 MiB free",
             "make room"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace yoke::cluster
