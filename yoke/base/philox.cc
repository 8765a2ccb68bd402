#include "yoke/base/philox.h"

#include "yoke/base/random.h"

// One copy of the vector loop for each instruction set, chosen when the program is loaded. Integer
// arithmetic: the bits are the same. Sanitizers start too late for such a choice.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(YOKE_SANITIZED)
#define YOKE_VECTOR_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define YOKE_VECTOR_CLONES
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

YOKE_VECTOR_CLONES
void philox_words(std::uint64_t key, Draw draw, std::uint64_t first_counter,
                  std::span<std::uint32_t, kWordsAtOnce> words) {
  // Each 32-bit word lies in a 64-bit lane: the products then need no shuffles.
  constexpr std::size_t kLanes = 16;
  constexpr std::uint64_t kLow = 0xFFFFFFFF;
  std::uint32_t* out = words.data();
  for (std::size_t block = 0; block < kWordsAtOnce / 4; block += kLanes) {
    std::uint64_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) {
      const std::uint64_t index = first_counter + block + i;
      c0[i] = index & kLow;
      c1[i] = index >> 32;
      c2[i] = static_cast<std::uint32_t>(draw);
      c3[i] = 0;
    }
    std::uint32_t k0 = static_cast<std::uint32_t>(key);
    std::uint32_t k1 = static_cast<std::uint32_t>(key >> 32);
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < kLanes; ++i) {
        const std::uint64_t product0 = (c0[i] & kLow) * kMultiplier0;
        const std::uint64_t product1 = (c2[i] & kLow) * kMultiplier1;
        c0[i] = (product1 >> 32) ^ (c1[i] & kLow) ^ k0;
        c1[i] = product1;
        c2[i] = (product0 >> 32) ^ (c3[i] & kLow) ^ k1;
        c3[i] = product0;
      }
      k0 += kWeyl0;
      k1 += kWeyl1;
    }
    for (std::size_t i = 0; i < kLanes; ++i) {
      out[4 * i] = static_cast<std::uint32_t>(c0[i]);
      out[4 * i + 1] = static_cast<std::uint32_t>(c1[i]);
      out[4 * i + 2] = static_cast<std::uint32_t>(c2[i]);
      out[4 * i + 3] = static_cast<std::uint32_t>(c3[i]);
    }
    out += 4 * kLanes;
  }
}

}  // namespace detail
}  // namespace yoke
