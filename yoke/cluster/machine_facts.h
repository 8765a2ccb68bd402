#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "yoke/cluster/cgroup.h"

namespace yoke::cluster {

/// What was found about this machine, as it is: findings.h says what is good and what is not.
/// Problems are empty where something works, else they say what failed and why.
struct MachineFacts {
  struct Build {
    std::string yoke, type, compiler;
    std::string libtorch;    ///< the version that was compiled against
    std::string library;     ///< the file that was loaded
    std::string capability;  ///< of the processor, as libtorch uses it: "AVX512"
    std::string blas;
    bool openmp = true;
    std::int64_t threads = 1;  ///< that libtorch would start on its own
  } build;

  struct Allocator {
    std::string name;                ///< "glibc 2.36", "jemalloc"
    bool keeps_freed_memory = true;  ///< takes the thresholds that workers set
  } allocator;

  struct Cores {
    int online = 1;
    int allowed = 1;  ///< by the affinity mask
  } cores;

  struct Memory {
    std::uint64_t total = 0, available = 0;
  } memory;

  CgroupLimits cgroup;

  struct Sharing {
    std::optional<std::uint64_t> dev_shm_bytes;  ///< size of /dev/shm; nothing: it is not there
    std::string memfd_problem;
    std::string peer_problem;  ///< of opening the memory of another process
  } sharing;

  /// Soft limits; nothing: unlimited.
  struct Limits {
    std::optional<std::uint64_t> open_files, processes, address_space, core_bytes;
  } limits;

  struct Network {
    std::string loopback_problem;
    std::string interface;  ///< of the default route; empty: there is none
    std::string address;
  } network;

  struct Clocks {
    /// How far the wall clock moved against the monotonic one in `watched` seconds.
    double drift = 0, watched = 0;
    std::optional<bool> synchronized;  ///< by NTP, as the kernel says; nothing: unknown
  } clocks;

  struct Disk {
    std::string folder;
    std::string problem;
    std::uint64_t written = 0, free = 0;
    double seconds = 0;  ///< to write that and have it on the disk
  } disk;
};

/// Looks and tries: makes memory, a process, a connection to itself, and a file without a name of
/// 16 MiB in the current folder (given up after 5 s). Leaves nothing. About 0.2 s, most of it the
/// clocks and the disk. Knows all but `build`, which needs libtorch. Call it while there is one
/// thread: it forks.
MachineFacts look_at_this_machine();

}  // namespace yoke::cluster
