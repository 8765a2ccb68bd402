#include "yoke/net/shm/wait.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <thread>

namespace yoke::net {

void Signal::sleep(std::uint32_t seen, Clock::duration slice) {
  const auto nanoseconds =
      std::max<long>(std::chrono::duration_cast<std::chrono::nanoseconds>(slice).count(), 0);
  const timespec span{.tv_sec = nanoseconds / 1'000'000'000,
                      .tv_nsec = nanoseconds % 1'000'000'000};
  sleepers.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&value), FUTEX_WAIT, seen, &span, nullptr, 0);
  sleepers.fetch_sub(1, std::memory_order_seq_cst);
}

void Signal::wake() {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&value), FUTEX_WAKE, INT_MAX, nullptr,
          nullptr, 0);
}

WaitPolicy WaitPolicy::of(int ranks, int cores) {
  if (ranks <= cores) return {.pauses = 4000, .yields = 0};
  return {.pauses = 20, .yields = 2000};
}

int usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace yoke::net
