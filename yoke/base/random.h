#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace yoke {

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
/// SC'11): four 32-bit words for a 128-bit counter under a 64-bit key. A pure function: nothing to
/// save, and the same on every machine. Checked against the vectors that the authors published with
/// Random123.
std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key);

/// A stream of random numbers whose elements are addressed, not drawn in order: element `i` depends
/// on the key and on `i` alone. Keys are made of words that say what the numbers are for:
/// `RandomKey(seed).with("dropout").with(step).with(micro_batch).with("layers.3")`.
class RandomKey {
 public:
  explicit RandomKey(std::uint64_t seed);
  RandomKey with(std::uint64_t word) const;
  RandomKey with(std::string_view word) const;

  std::uint64_t value() const { return value_; }

  /// The 64 random bits of element `i`.
  std::uint64_t bits(std::uint64_t i) const;
  /// Uniform in [0, 1) with 24 bits, for element `i`.
  float uniform(std::uint64_t i) const;
  /// Fills `out` with the uniforms of elements first, first + 1, ... One Philox call serves four
  /// elements: element `i` is word `i % 4` of counter `i / 4`, whatever `first` is, and equals
  /// uniform(i).
  void uniform(std::span<float> out, std::uint64_t first = 0) const;
  /// Standard normals by Box-Muller in double; element `i` depends on `i` alone.
  void normal(std::span<float> out, std::uint64_t first = 0) const;
  void normal(std::span<double> out, std::uint64_t first = 0) const;
  /// out[j] = scale where uniform(first + j) >= p, else 0: the mask of a dropout layer.
  void dropout_mask(std::span<float> out, float p, float scale, std::uint64_t first = 0) const;

  /// A permutation of 0 .. n-1 (Fisher-Yates, unbiased by rejection).
  std::vector<std::int64_t> permutation(std::int64_t n) const;

 private:
  std::uint64_t value_;
};

}  // namespace yoke
