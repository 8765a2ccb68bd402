#include "yoke/comm/limits.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/vector_clones.h"
#include "yoke/comm/slice.h"
#include "yoke/net/shm/wait.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace yoke::comm {
namespace {

/// The fastest plain loop for two: every line is read once and written once.
YOKE_LEVEL_CLONES void two_plain(float* a, float* b, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

void two_streaming(float* a, float* b, std::size_t count) {
#if defined(__x86_64__)
  // Whole cache lines, aligned, as streaming stores want them; slices begin at pages.
  const std::size_t lines = count / 16;
  for (std::size_t i = 0; i < lines * 16; i += 4) {
    const __m128 sum = _mm_add_ps(_mm_load_ps(a + i), _mm_load_ps(b + i));
    _mm_stream_ps(a + i, sum);
    _mm_stream_ps(b + i, sum);
  }
  _mm_sfence();
  two_plain(a + lines * 16, b + lines * 16, count - lines * 16);
#else
  two_plain(a, b, count);
#endif
}

void many_plain(const std::vector<float*>& operands, std::size_t count) {
  constexpr std::size_t kPiece = 1024;
  float sum[kPiece];
  for (std::size_t first = 0; first < count; first += kPiece) {
    const std::size_t piece = std::min(kPiece, count - first);
    std::memcpy(sum, operands[0] + first, piece * sizeof(float));
    for (std::size_t r = 1; r < operands.size(); ++r) {
      const float* next = operands[r] + first;
      for (std::size_t i = 0; i < piece; ++i) sum[i] += next[i];
    }
    for (float* operand : operands) std::memcpy(operand + first, sum, piece * sizeof(float));
  }
}

}  // namespace

void memory_bound_pass(SharedSections& sections, int rank, int ranks, std::size_t bytes,
                       Stores stores) {
  const Slice own = slice_of(bytes / sizeof(float), ranks, rank, kSliceGrain);
  std::vector<float*> operands;
  for (int r = 0; r < ranks; ++r)
    operands.push_back(reinterpret_cast<float*>(sections.of(r).data()) + own.first);
  if (ranks != 2) return many_plain(operands, own.count);
  stores == Stores::kPlain ? two_plain(operands[0], operands[1], own.count)
                           : two_streaming(operands[0], operands[1], own.count);
}

double cache_line_round_trip(SharedSections& sections, int rank, int trips) {
  if (rank > 1) return 0;
  const auto word = [&](int of) {
    return std::atomic_ref<std::uint32_t>(
        *reinterpret_cast<std::uint32_t*>(sections.of(of).data()));
  };
  const auto mine = word(rank);
  const auto other = word(1 - rank);
  const auto await = [&](std::uint32_t value) {
    for (int looks = 0; other.load(std::memory_order_acquire) != value;) {
      if (++looks % 10'000 == 0) sched_yield();
    }
  };
  const std::uint32_t start = mine.load(std::memory_order_relaxed);
  const auto begin = Clock::now();
  for (int i = 1; i <= trips; ++i) {
    const std::uint32_t value = start + static_cast<std::uint32_t>(i);
    if (rank == 0) mine.store(value, std::memory_order_release);
    await(value);
    if (rank == 1) mine.store(value, std::memory_order_release);
  }
  return Seconds(Clock::now() - begin).count() / trips;
}

}  // namespace yoke::comm
