#include "yoke/base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

namespace yoke {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers published with Random123 (kat_vectors, philox4x32, 10 rounds).
TEST(Philox, GivesThePublishedAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t kAll = 0xffffffff;
  EXPECT_EQ(philox4x32({kAll, kAll, kAll, kAll}, {kAll, kAll}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

// What documentation promises of element i: word i % 4 of counter i / 4, 24 bits.
TEST(RandomKey, UniformIsAWordOfItsCounter) {
  const RandomKey key = RandomKey(7).with("dropout").with(3);
  const auto value = key.value();
  for (const std::uint64_t i : {0ull, 1ull, 6ull, 4095ull, (1ull << 40) + 3}) {
    const std::uint64_t counter = i / 4;
    const auto words = philox4x32(
        {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0},
        {static_cast<std::uint32_t>(value), static_cast<std::uint32_t>(value >> 32)});
    EXPECT_EQ(key.uniform(i), static_cast<float>(words[i % 4] >> 8) / 16777216.0f) << i;
  }
}

TEST(RandomKey, FillsEqualSingleElementsWhereverTheyStart) {
  const RandomKey key = RandomKey(11).with("x");
  // Around the blocks of the vector loop, and where the counter carries into its upper half.
  for (const std::uint64_t first : {0ull, 1ull, 2ull, 3ull, 255ull, 257ull, (1ull << 34) - 130}) {
    for (const std::size_t count : {0u, 1u, 5u, 255u, 256u, 300u, 1025u}) {
      std::vector<float> uniforms(count), masks(count), normals(count);
      std::vector<double> wide(count);
      key.uniform(std::span(uniforms), first);
      key.dropout_mask(masks, 0.3f, 1.5f, first);
      key.normal(std::span(normals), first);
      key.normal(std::span(wide), first);
      for (std::size_t j = 0; j < count; ++j) {
        const float uniform = key.uniform(first + j);
        ASSERT_EQ(uniforms[j], uniform) << first << " + " << j;
        ASSERT_EQ(masks[j], uniform >= 0.3f ? 1.5f : 0.0f) << first << " + " << j;
        double alone = 0;
        key.normal(std::span(&alone, 1), first + j);
        ASSERT_EQ(wide[j], alone) << first << " + " << j;
        ASSERT_EQ(normals[j], static_cast<float>(alone)) << first << " + " << j;
      }
    }
  }
}

TEST(RandomKey, EveryWordOfAKeyCounts) {
  const RandomKey root(1);
  const std::vector<RandomKey> keys = {root,
                                       RandomKey(2),
                                       root.with(0),
                                       root.with(1),
                                       root.with(std::uint64_t{1} << 32),
                                       root.with("a"),
                                       root.with(""),
                                       root.with("a").with("b"),
                                       root.with("b").with("a"),
                                       root.with("ab"),
                                       root.with(1).with(2),
                                       root.with(2).with(1)};
  std::set<std::uint64_t> values;
  for (const RandomKey& key : keys) values.insert(key.value());
  EXPECT_EQ(values.size(), keys.size());
  EXPECT_EQ(RandomKey(1).with("a").with(7).value(), root.with("a").with(7).value());
}

// Moments of n draws within five standard errors of what the distribution has.
TEST(RandomKey, UniformsHaveTheMomentsOfUniforms) {
  std::vector<float> draws(1 << 20);
  RandomKey(5).with("moments").uniform(std::span(draws));
  const double n = static_cast<double>(draws.size());
  double sum = 0, squares = 0;
  for (const float draw : draws) {
    ASSERT_GE(draw, 0.0f);
    ASSERT_LT(draw, 1.0f);
    sum += draw;
    squares += double{draw} * draw;
  }
  EXPECT_NEAR(sum / n, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(squares / n, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / n));
}

TEST(RandomKey, NormalsHaveTheMomentsOfNormalsAndNeighboursAreIndependent) {
  std::vector<double> draws(1 << 18);
  RandomKey(5).with("moments").normal(std::span(draws));
  const double n = static_cast<double>(draws.size());
  double sum = 0, squares = 0, fourth = 0, neighbours = 0;
  for (std::size_t i = 0; i < draws.size(); ++i) {
    ASSERT_TRUE(std::isfinite(draws[i]));
    sum += draws[i];
    squares += draws[i] * draws[i];
    fourth += std::pow(draws[i], 4);
    neighbours += draws[i] * draws[(i + 1) % draws.size()];
  }
  EXPECT_NEAR(sum / n, 0, 5 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 5 * std::sqrt(2 / n));
  EXPECT_NEAR(fourth / n, 3, 5 * std::sqrt(96 / n));
  EXPECT_NEAR(neighbours / n, 0, 5 / std::sqrt(n));
}

TEST(RandomKey, DropoutKeepsItsShare) {
  std::vector<float> mask(1 << 18);
  const RandomKey key = RandomKey(9).with("layers.3");
  key.dropout_mask(mask, 0.1f, 1 / 0.9f);
  const double n = static_cast<double>(mask.size());
  const double kept = static_cast<double>(std::count(mask.begin(), mask.end(), 1 / 0.9f));
  EXPECT_EQ(static_cast<double>(std::count(mask.begin(), mask.end(), 0.0f)), n - kept);
  EXPECT_NEAR(kept / n, 0.9, 5 * std::sqrt(0.09 / n));
  key.dropout_mask(mask, 0.0f, 1.0f);
  EXPECT_EQ(std::count(mask.begin(), mask.end(), 1.0f), static_cast<std::ptrdiff_t>(mask.size()));
  key.dropout_mask(mask, 1.0f, 1.0f);
  EXPECT_EQ(std::count(mask.begin(), mask.end(), 0.0f), static_cast<std::ptrdiff_t>(mask.size()));
}

TEST(RandomKey, PermutationHoldsEachNumberOnce) {
  for (const std::int64_t n : {0, 1, 2, 3, 10, 1797}) {
    std::vector<std::int64_t> order = RandomKey(3).with("epoch").with(4).permutation(n);
    EXPECT_EQ(order, RandomKey(3).with("epoch").with(4).permutation(n));
    if (n > 3) {
      EXPECT_NE(order, RandomKey(3).with("epoch").with(5).permutation(n));
    }
    std::sort(order.begin(), order.end());
    std::vector<std::int64_t> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0);
    EXPECT_EQ(order, all);
  }
}

// All 24 orders of four, chi-square with 23 degrees of freedom: beyond 65 once in 100,000.
TEST(RandomKey, PermutationsAreEquallyLikely) {
  std::map<std::vector<std::int64_t>, int> counts;
  constexpr int kDraws = 24000;
  for (std::uint64_t i = 0; i < kDraws; ++i) ++counts[RandomKey(i).permutation(4)];
  ASSERT_EQ(counts.size(), 24u);
  double chi = 0;
  for (const auto& [order, count] : counts) chi += std::pow(count - kDraws / 24, 2) / (kDraws / 24);
  EXPECT_LT(chi, 65);
}

}  // namespace
}  // namespace yoke
