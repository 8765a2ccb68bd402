#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace yoke::detail {

/// What the third word of a counter says the numbers are drawn for, so that the uniforms, normals
/// and bits of one key are independent of each other. The values fix the bits of every run: never
/// renumber.
enum class Draw : std::uint32_t { kUniform = 0, kBits = 1, kNormal = 2, kKey = 3 };

/// Ten rounds under `key` for the counter {low half of `index`, high half, draw, `extra`}.
std::array<std::uint32_t, 4> philox_at(std::uint64_t key, Draw draw, std::uint64_t index,
                                       std::uint32_t extra = 0);

/// How many elements philox_words makes in one go.
inline constexpr std::size_t kWordsAtOnce = 256;

/// words[j] = word j % 4 of counter `first_counter + j / 4`: what philox_at gives one by one, in
/// vector registers.
void philox_words(std::uint64_t key, Draw draw, std::uint64_t first_counter,
                  std::span<std::uint32_t, kWordsAtOnce> words);

}  // namespace yoke::detail
