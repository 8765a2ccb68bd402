#include "yoke/base/philox.h"

#include <algorithm>

#include "yoke/base/random.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace yoke {
namespace {

constexpr std::uint32_t kMultiplier0 = 0xD2511F53;
constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57;
constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
constexpr int kRounds = 10;

constexpr std::uint32_t low(std::uint64_t value) {
  return static_cast<std::uint32_t>(value);
}
constexpr std::uint32_t high(std::uint64_t value) {
  return static_cast<std::uint32_t>(value >> 32);
}

}  // namespace

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  auto [c0, c1, c2, c3] = counter;
  auto [k0, k1] = key;
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kMultiplier0} * c0;
    const std::uint64_t product1 = std::uint64_t{kMultiplier1} * c2;
    c0 = high(product1) ^ c1 ^ k0;
    c1 = low(product1);
    c2 = high(product0) ^ c3 ^ k1;
    c3 = low(product0);
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {c0, c1, c2, c3};
}

namespace detail {

std::array<std::uint32_t, 4> philox_at(std::uint64_t key, Draw draw, std::uint64_t index,
                                       std::uint32_t extra) {
  return philox4x32({low(index), high(index), static_cast<std::uint32_t>(draw), extra},
                    {low(key), high(key)});
}

namespace {

void one_by_one(std::uint64_t key, Draw draw, std::uint64_t first_counter, std::uint32_t* words) {
  for (std::size_t j = 0; j < kWordsAtOnce; j += 4) {
    const auto four = philox_at(key, draw, first_counter + j / 4);
    std::copy(four.begin(), four.end(), words + j);
  }
}

#ifdef __x86_64__

/// Four counters: word w of each in the lower halves of the 64-bit lanes of c[w], whose upper
/// halves are garbage, which the multiplication ignores and `shift` or the last `blend` drops.
struct FourCounters {
  __m256i c0, c1, c2, c3;
};

__attribute__((target("avx2"), always_inline)) inline void advance(FourCounters& four, __m256i key0,
                                                                   __m256i key1) {
  const __m256i product0 = _mm256_mul_epu32(four.c0, _mm256_set1_epi64x(kMultiplier0));
  const __m256i product1 = _mm256_mul_epu32(four.c2, _mm256_set1_epi64x(kMultiplier1));
  const __m256i upper0 = _mm256_srli_epi64(product0, 32);
  const __m256i upper1 = _mm256_srli_epi64(product1, 32);
  four.c0 = _mm256_xor_si256(_mm256_xor_si256(upper1, four.c1), key0);
  four.c1 = product1;
  four.c2 = _mm256_xor_si256(_mm256_xor_si256(upper0, four.c3), key1);
  four.c3 = product0;
}

__attribute__((target("avx2"), always_inline)) inline void store(const FourCounters& four,
                                                                 std::uint32_t* words) {
  // Words 0 and 1 of a counter share a lane, and so do 2 and 3; then whole lanes are interleaved.
  const __m256i front = _mm256_blend_epi32(four.c0, _mm256_slli_epi64(four.c1, 32), 0xAA);
  const __m256i back = _mm256_blend_epi32(four.c2, _mm256_slli_epi64(four.c3, 32), 0xAA);
  const __m256i even = _mm256_unpacklo_epi64(front, back);  // counters 0 and 2
  const __m256i odd = _mm256_unpackhi_epi64(front, back);   // counters 1 and 3
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words),
                      _mm256_permute2x128_si256(even, odd, 0x20));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words + 8),
                      _mm256_permute2x128_si256(even, odd, 0x31));
}

__attribute__((target("avx2"))) void sixteen_at_once(std::uint64_t key, Draw draw,
                                                     std::uint64_t first_counter,
                                                     std::uint32_t* words) {
  constexpr std::size_t kGroups = 2;  // Independent chains, to hide the latency of the product.
  for (std::size_t j = 0; j < kWordsAtOnce; j += 16 * kGroups) {
    FourCounters groups[kGroups];
    for (std::size_t g = 0; g < kGroups; ++g) {
      const auto start = static_cast<long long>(first_counter + j / 4 + 4 * g);
      const __m256i index =
          _mm256_add_epi64(_mm256_set1_epi64x(start), _mm256_set_epi64x(3, 2, 1, 0));
      groups[g] = {index, _mm256_srli_epi64(index, 32),
                   _mm256_set1_epi64x(static_cast<std::uint32_t>(draw)), _mm256_setzero_si256()};
    }
    std::uint32_t key0 = low(key);
    std::uint32_t key1 = high(key);
    for (int round = 0; round < kRounds; ++round) {
      for (FourCounters& group : groups) {
        advance(group, _mm256_set1_epi64x(key0), _mm256_set1_epi64x(key1));
      }
      key0 += kWeyl0;
      key1 += kWeyl1;
    }
    for (std::size_t g = 0; g < kGroups; ++g) store(groups[g], words + j + 16 * g);
  }
}

#endif

}  // namespace

void philox_words(std::uint64_t key, Draw draw, std::uint64_t first_counter,
                  std::span<std::uint32_t, kWordsAtOnce> words) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) {
    sixteen_at_once(key, draw, first_counter, words.data());
    return;
  }
#endif
  one_by_one(key, draw, first_counter, words.data());
}

}  // namespace detail
}  // namespace yoke
