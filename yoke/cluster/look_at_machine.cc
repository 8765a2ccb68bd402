#include <dlfcn.h>
#include <gnu/libc-version.h>
#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "yoke/base/text.h"
#include "yoke/cluster/machine_facts.h"
#include "yoke/cluster/try_machine.h"

namespace yoke::cluster {
namespace {

std::string text_of(const char* file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

MachineFacts::Allocator allocator() {
  const auto there = [](const char* symbol) { return ::dlsym(RTLD_DEFAULT, symbol) != nullptr; };
  if (there("mallctl")) return {.name = "jemalloc"};
  if (there("mi_version")) return {.name = "mimalloc"};
  if (there("tc_version")) return {.name = "tcmalloc"};
  // What tensor::set_up_worker asks for.
  constexpr int kKeep = 1 << 30;
  const bool keeps =
      ::mallopt(M_MMAP_THRESHOLD, kKeep) == 1 && ::mallopt(M_TRIM_THRESHOLD, kKeep) == 1;
  return {.name = cat("glibc ", ::gnu_get_libc_version(), " malloc"), .keeps_freed_memory = keeps};
}

MachineFacts::Cores cores() {
  MachineFacts::Cores cores;
  cores.online = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t allowed;
  cores.allowed =
      ::sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : cores.online;
  return cores;
}

MachineFacts::Memory memory() {
  MachineFacts::Memory memory;
  std::istringstream lines(text_of("/proc/meminfo"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kilobytes = 0;
    words >> name >> kilobytes;
    if (name == "MemTotal:") memory.total = kilobytes * 1024;
    if (name == "MemAvailable:") memory.available = kilobytes * 1024;
  }
  return memory;
}

std::optional<std::uint64_t> dev_shm_bytes() {
  struct statvfs status {};
  if (::statvfs("/dev/shm", &status) != 0) return std::nullopt;
  return static_cast<std::uint64_t>(status.f_blocks) * status.f_frsize;
}

std::optional<std::uint64_t> soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

}  // namespace

MachineFacts look_at_this_machine() {
  MachineFacts facts;
  facts.allocator = allocator();
  facts.cores = cores();
  facts.memory = memory();
  facts.cgroup = cgroup_limits(text_of("/proc/self/cgroup"));
  facts.sharing = {.dev_shm_bytes = dev_shm_bytes(),
                   .memfd_problem = try_memfd(),
                   .peer_problem = try_memory_of_a_peer()};
  facts.limits = {.open_files = soft_limit(RLIMIT_NOFILE),
                  .processes = soft_limit(RLIMIT_NPROC),
                  .address_space = soft_limit(RLIMIT_AS),
                  .core_bytes = soft_limit(RLIMIT_CORE)};
  facts.network = try_network();
  facts.clocks = watch_clocks();
  facts.disk = try_disk();
  return facts;
}

}  // namespace yoke::cluster
