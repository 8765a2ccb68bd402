#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace yoke::cluster {

/// What the cgroup allows its processes, of either version: the tightest on the way from the
/// process's group to the root. Nothing: no limit.
struct CgroupLimits {
  std::optional<double> cores;
  std::string cores_file;  ///< that says so
  std::optional<std::uint64_t> memory;
  std::uint64_t memory_used = 0;  ///< by the group that has this limit
  std::string memory_file;
};

/// `membership`: the text of /proc/self/cgroup. What cannot be read is no limit.
CgroupLimits cgroup_limits(const std::string& membership,
                           const std::filesystem::path& root = "/sys/fs/cgroup");

}  // namespace yoke::cluster
