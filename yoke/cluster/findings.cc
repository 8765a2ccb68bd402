#include "yoke/cluster/findings.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "yoke/base/text.h"

namespace yoke::cluster {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

std::string rounded(double value) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(value < 10 ? 1 : 0) << value;
  return text.str();
}

std::string bytes_text(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (bytes >= kGiB) return cat(rounded(value / kGiB), " GiB");
  if (bytes >= kMiB) return cat(rounded(value / kMiB), " MiB");
  return cat(bytes / 1024, " KiB");
}

Finding build(const MachineFacts::Build& build) {
  Finding finding{.check = "build",
                  .found = cat("yoke ", build.yoke, " (", build.type, "), ", build.compiler)};
  if (build.type != "Release") {
    finding.verdict = Verdict::kWarn;
    finding.advice = "Configure with -DCMAKE_BUILD_TYPE=Release: this build computes slowly.";
  }
  return finding;
}

Finding libtorch(const MachineFacts::Build& build) {
  Finding finding{.check = "libtorch"};
  finding.found = cat(build.libtorch, ", ", build.capability, ", ", build.blas,
                      build.openmp ? ", OpenMP" : ", no OpenMP", ", ", build.threads,
                      build.threads == 1 ? " thread" : " threads",
                      " by itself (a worker: train.threads), ", build.library);
  if (build.capability == "DEFAULT") {
    finding.verdict = Verdict::kWarn;
    finding.advice =
        "libtorch uses no vector instructions. Look whether ATEN_CPU_CAPABILITY is set, and "
        "whether "
        "the virtual machine hides AVX2 from its guests.";
  } else if (build.blas.empty()) {
    finding.verdict = Verdict::kWarn;
    finding.found = cat(build.libtorch, " without a library for matrix products");
    finding.advice = "Install the torch wheel of PyPI (scripts/setup), which brings MKL.";
  }
  return finding;
}

Finding allocator(const MachineFacts::Allocator& allocator) {
  Finding finding{.check = "allocator", .found = allocator.name};
  if (allocator.keeps_freed_memory) {
    finding.found += ", keeps freed memory";
  } else {
    finding.verdict = Verdict::kWarn;
    finding.advice =
        "malloc refuses the thresholds that workers set, and gives memory back in every step. Look "
        "for MALLOC_ and GLIBC_TUNABLES in the environment.";
  }
  return finding;
}

Finding cores(const MachineFacts& facts) {
  const auto& [online, allowed] = facts.cores;
  Finding finding{.check = "cores", .found = cat(allowed, " of ", online, " online")};
  const auto& quota = facts.cgroup.cores;
  if (!quota || *quota >= allowed) return finding;
  finding.verdict = Verdict::kWarn;
  finding.found += cat(", and a quota of ", rounded(*quota), " (", facts.cgroup.cores_file, ")");
  const auto fit = std::max(1, static_cast<int>(std::floor(*quota)));
  finding.advice = cat("Workers (-n) times train.threads should not exceed ", fit,
                       ": beyond the quota the kernel stops them for a part of each 0.1 s.");
  return finding;
}

Finding memory(const MachineFacts& facts) {
  std::uint64_t left = facts.memory.available;
  Finding finding{.check = "memory",
                  .found = cat(bytes_text(left), " of ", bytes_text(facts.memory.total), " free")};
  const auto& cgroup = facts.cgroup;
  if (cgroup.memory && *cgroup.memory < facts.memory.total) {
    const auto here = *cgroup.memory - std::min(*cgroup.memory, cgroup.memory_used);
    left = std::min(left, here);
    finding.found += cat(", ", bytes_text(here), " of ", bytes_text(*cgroup.memory),
                         " left in the cgroup (", cgroup.memory_file, ")");
  }
  if (left < 512 * kMiB) {
    finding.verdict = Verdict::kFail;
    finding.advice =
        "A worker needs about 0.3 GiB before it has a model. End other programs, or "
        "raise the limit of the cgroup.";
  } else if (left < 2 * kGiB) {
    finding.verdict = Verdict::kWarn;
    finding.advice =
        "Enough for small models and few workers; a worker needs about 0.3 GiB besides "
        "its model and its data.";
  }
  return finding;
}

Finding shared_memory(const MachineFacts::Sharing& sharing) {
  Finding finding{.check = "shared memory",
                  .found = "memfd works, and another process can open it"};
  if (!sharing.memfd_problem.empty()) {
    finding.verdict = Verdict::kFail;
    finding.found = sharing.memfd_problem;
    finding.advice =
        "Allow memfd_create (a sandbox's filter?), or use --transport tcp, which is "
        "slower on one host.";
  } else if (!sharing.peer_problem.empty()) {
    finding.verdict = Verdict::kFail;
    finding.found = sharing.peer_problem;
    finding.advice =
        "Workers open each other's memory through /proc/PID/fd. Mount /proc without "
        "hidepid and run all as one user, or use --transport tcp.";
  }
  return finding;
}

Finding dev_shm(const MachineFacts::Sharing& sharing) {
  if (!sharing.dev_shm_bytes) {
    return {.check = "/dev/shm", .found = "not there; yoke does not need it"};
  }
  Finding finding{.check = "/dev/shm",
                  .found = cat(bytes_text(*sharing.dev_shm_bytes), "; yoke does not need it")};
  if (*sharing.dev_shm_bytes < 64 * kMiB) {
    finding.verdict = Verdict::kWarn;
    finding.advice =
        "Other libraries may fail there: MPI and Python's data loaders use it. Give a "
        "container --shm-size=1g.";
  }
  return finding;
}

std::string limit_text(const std::optional<std::uint64_t>& limit) {
  return limit ? std::to_string(*limit) : "unlimited";
}

/// `needed`: below it nothing works; `wished`: below it not everything.
Finding limit(const std::string& name, const std::optional<std::uint64_t>& value,
              std::uint64_t needed, std::uint64_t wished, const std::string& advice) {
  Finding finding{.check = name, .found = limit_text(value)};
  if (!value || *value >= wished) return finding;
  finding.verdict = *value < needed ? Verdict::kFail : Verdict::kWarn;
  finding.advice = advice;
  return finding;
}

Finding address_space(const std::optional<std::uint64_t>& bytes) {
  auto finding = limit("address space", bytes, 2 * kGiB, 16 * kGiB,
                       "libtorch and the arenas map much more than they use. Raise it: ulimit -v "
                       "unlimited.");
  if (bytes) finding.found = bytes_text(*bytes);
  return finding;
}

Finding core_files(const std::optional<std::uint64_t>& bytes) {
  const bool none = bytes && *bytes == 0;
  return {.check = "core files",
          .found = none    ? "off (ulimit -c unlimited turns them on)"
                   : bytes ? bytes_text(*bytes)
                           : std::string("unlimited")};
}

Finding loopback(const MachineFacts::Network& network) {
  if (network.loopback_problem.empty()) {
    return {.check = "loopback", .found = "a free port of 127.0.0.1 answers"};
  }
  return {.check = "loopback",
          .verdict = Verdict::kFail,
          .found = network.loopback_problem,
          .advice =
              "Workers find each other through 127.0.0.1: bring lo up (ip link set lo up), and "
              "look at firewalls."};
}

Finding interface(const MachineFacts::Network& network) {
  if (network.interface.empty()) {
    return {.check = "interface",
            .found = "no default route: workers of this host alone can take part"};
  }
  return {.check = "interface", .found = cat(network.interface, ", ", network.address)};
}

Finding clocks(const MachineFacts::Clocks& clocks) {
  Finding finding{.check = "clock"};
  if (std::abs(clocks.drift) > 0.02 + 0.001 * clocks.watched) {
    finding.verdict = Verdict::kWarn;
    finding.found = cat("the wall clock jumped by ", rounded(clocks.drift * 1000), " ms in ",
                        rounded(clocks.watched * 1000), " ms");
    finding.advice =
        "Training goes by the monotonic clock; the times in logs and events will not "
        "be right. Something sets the clock: look for two time services.";
  } else if (clocks.synchronized && !*clocks.synchronized) {
    finding.verdict = Verdict::kWarn;
    finding.found = "steady, not synchronized by NTP";
    finding.advice =
        "Training does not depend on it; on several hosts the times in their logs "
        "cannot be compared. Run chrony or systemd-timesyncd.";
  } else {
    finding.found = cat("steady", clocks.synchronized ? ", synchronized by NTP" : "");
  }
  return finding;
}

Finding disk(const MachineFacts::Disk& disk) {
  Finding finding{.check = "disk"};
  if (!disk.problem.empty()) {
    finding.verdict = Verdict::kFail;
    finding.found = disk.problem;
    finding.advice =
        "Runs are folders below the current one. Go to a folder that can be written, or "
        "give --run a path.";
    return finding;
  }
  const double rate = static_cast<double>(disk.written) / std::max(disk.seconds, 1e-9) / 1e6;
  finding.found =
      cat(rounded(rate), " MB/s with fsync, ", bytes_text(disk.free), " free (", disk.folder, ")");
  if (disk.free < kGiB) {
    finding.verdict = Verdict::kWarn;
    finding.advice =
        "A checkpoint holds the model three times with Adam, and several are kept: make "
        "room.";
  } else if (rate < 20) {
    finding.verdict = Verdict::kWarn;
    finding.advice =
        "Checkpoints will take long, and all workers wait for them: save less often "
        "(train.checkpoint_every), or to a faster disk.";
  }
  return finding;
}

}  // namespace

std::string name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      return "fail";
  }
  return "?";
}

std::vector<Finding> findings_of(const MachineFacts& facts) {
  const auto& limits = facts.limits;
  return {
      build(facts.build),
      libtorch(facts.build),
      allocator(facts.allocator),
      cores(facts),
      memory(facts),
      shared_memory(facts.sharing),
      dev_shm(facts.sharing),
      limit(
          "open files", limits.open_files, 64, 1024,
          "A worker needs about 40, and two more for each other worker over TCP. Raise it: ulimit "
          "-n 4096."),
      limit("processes", limits.processes, 16, 256,
            "Each worker is a process with a few threads. Raise it: ulimit -u 4096."),
      address_space(limits.address_space),
      core_files(limits.core_bytes),
      loopback(facts.network),
      interface(facts.network),
      clocks(facts.clocks),
      disk(facts.disk),
  };
}

}  // namespace yoke::cluster
