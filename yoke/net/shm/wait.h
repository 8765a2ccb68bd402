#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "yoke/base/clock.h"

namespace yoke::net {

/// A 32-bit word in shared memory that ranks wait on. Sleepers are counted beside it, so that
/// posting to nobody costs no system call. Works between processes and between threads: its futex
/// is not a private one.
struct Signal {
  std::atomic<std::uint32_t> value{0};
  std::atomic<std::uint32_t> sleepers{0};

  /// Stores `next`; what was written before is visible to whoever sees it.
  void post(std::uint32_t next) {
    // Sequentially consistent against the sleeper, who counts itself and then looks at the value
    // again: one of the two sees the other.
    value.store(next, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0) wake();
  }
  /// Adds one: for words that only say "look again".
  void ring() {
    value.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers.load(std::memory_order_seq_cst) != 0) wake();
  }
  /// Sleeps while the value is `seen`, at most `slice`; may wake early.
  void sleep(std::uint32_t seen, Clock::duration slice);

 private:
  void wake();
};
static_assert(sizeof(Signal) == 8 && std::atomic<std::uint32_t>::is_always_lock_free);

/// How long a rank looks before it sleeps (measured: a futex costs 14 to 19 us when ranks outnumber
/// cores, 20 pauses and then yielding 2 us).
struct WaitPolicy {
  /// The longest that a rank yields before it sleeps.
  static constexpr auto kYielding = std::chrono::milliseconds(2);

  int pauses;
  int yields;
  /// 4,000 pauses when every rank can have a core of its own; else 20 pauses and 2,000 yields.
  static WaitPolicy of(int ranks, int cores);
};

/// Cores that this process may use (its affinity mask).
int usable_cores();

inline void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}

}  // namespace yoke::net
