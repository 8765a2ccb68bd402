#include "yoke/cluster/cgroup.h"

#include <fstream>
#include <sstream>
#include <vector>

namespace yoke::cluster {
namespace {

namespace fs = std::filesystem;

/// Version 1 writes "no limit" as the largest multiple of a page.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;

std::optional<std::uint64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::uint64_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

void tighten_cores(CgroupLimits& limits, double quota, double period, const fs::path& file) {
  if (quota <= 0 || period <= 0) return;
  const double cores = quota / period;
  if (limits.cores && *limits.cores <= cores) return;
  limits.cores = cores;
  limits.cores_file = file;
}

void tighten_memory(CgroupLimits& limits, const fs::path& limit, const fs::path& used) {
  const auto bytes = number_in(limit);
  if (!bytes || *bytes >= kNoLimit || (limits.memory && *limits.memory <= *bytes)) return;
  limits.memory = bytes;
  limits.memory_used = number_in(used).value_or(0);
  limits.memory_file = limit;
}

void read_version_2(CgroupLimits& limits, const fs::path& group) {
  // "150000 100000", or "max 100000".
  std::ifstream stream(group / "cpu.max");
  double quota = 0, period = 0;
  if (stream >> quota >> period) tighten_cores(limits, quota, period, group / "cpu.max");
  tighten_memory(limits, group / "memory.max", group / "memory.current");
}

void read_cores_of_version_1(CgroupLimits& limits, const fs::path& group) {
  std::ifstream stream(group / "cpu.cfs_quota_us");
  double quota = 0;
  if (!(stream >> quota)) return;
  const auto period = number_in(group / "cpu.cfs_period_us").value_or(0);
  tighten_cores(limits, quota, static_cast<double>(period), group / "cpu.cfs_quota_us");
}

/// The group and those above it, up to the root. In a container the path may be the host's, and
/// only the root be visible.
std::vector<fs::path> upwards(const fs::path& mount, const std::string& path) {
  std::vector<fs::path> groups;
  for (fs::path group = fs::path(path).relative_path(); !group.empty();
       group = group.parent_path()) {
    groups.push_back(mount / group);
  }
  groups.push_back(mount);
  return groups;
}

}  // namespace

CgroupLimits cgroup_limits(const std::string& membership, const fs::path& root) {
  CgroupLimits limits;
  std::error_code ignored;
  const fs::path unified =
      fs::exists(root / "cgroup.controllers", ignored) ? root : root / "unified";
  std::istringstream lines(membership);
  // "4:cpu,cpuacct:/path"; version 2 has no controllers.
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty()) {
      for (const auto& group : upwards(unified, path)) read_version_2(limits, group);
      continue;
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');) {
      // Mounted by all its names, or by each.
      const fs::path mount =
          fs::exists(root / controllers, ignored) ? root / controllers : root / name;
      for (const auto& group : upwards(mount, path)) {
        if (name == "cpu") read_cores_of_version_1(limits, group);
        if (name == "memory") {
          tighten_memory(limits, group / "memory.limit_in_bytes", group / "memory.usage_in_bytes");
        }
      }
    }
  }
  return limits;
}

}  // namespace yoke::cluster
