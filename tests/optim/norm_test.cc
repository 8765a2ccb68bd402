#include "yoke/optim/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace yoke::optim {
namespace {

template <typename T>
std::vector<T> noise(std::size_t count, unsigned seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(normal(generator));
  return values;
}

std::size_t blocks_of(std::size_t count) {
  return (count + kBlockElements - 1) / kBlockElements;
}

template <typename T>
std::vector<double> squares(std::span<const T> values) {
  std::vector<double> sums(blocks_of(values.size()));
  block_squares(values, sums);
  return sums;
}

/// The order that the header states, one element after another.
template <typename T>
double squares_as_stated(std::span<const T> block) {
  volatile double lanes[16] = {};
  for (std::size_t i = 0; i < block.size(); ++i) {
    volatile double square = static_cast<double>(block[i]) * static_cast<double>(block[i]);
    lanes[i % 16] = lanes[i % 16] + square;
  }
  for (int half : {8, 4, 2, 1}) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] = lanes[lane] + lanes[lane + half];
  }
  return lanes[0];
}

/// The tree by recursion: the largest power of two of values first, the rest after it.
double tree_by_recursion(std::span<const double> values) {
  if (values.size() == 1) return values[0];
  std::size_t left = 1;
  while (left * 2 < values.size()) left *= 2;
  return tree_by_recursion(values.first(left)) + tree_by_recursion(values.subspan(left));
}

template <typename T>
class BlockSquares : public testing::Test {};
using Elements = testing::Types<float, double>;
TYPED_TEST_SUITE(BlockSquares, Elements);

TYPED_TEST(BlockSquares, AddsInTheStatedOrderWhateverTheSize) {
  for (std::size_t count : {1, 7, 15, 16, 17, 31, 100, 1023, 1024, 1025, 2048, 5000}) {
    auto values = noise<TypeParam>(count, 3);
    auto sums = squares<TypeParam>(values);
    for (std::size_t block = 0; block < sums.size(); ++block) {
      auto part = std::span<const TypeParam>(values).subspan(block * kBlockElements);
      part = part.first(std::min(part.size(), kBlockElements));
      EXPECT_EQ(sums[block], squares_as_stated<TypeParam>(part))
          << count << " elements, block " << block;
    }
  }
}

TYPED_TEST(BlockSquares, AgreesWithExactArithmetic) {
  auto values = noise<TypeParam>(100'003, 5);
  long double exact = 0;
  for (TypeParam value : values) exact += static_cast<long double>(value) * value;
  double sum = tree_sum(squares<TypeParam>(values));
  EXPECT_NEAR(sum / static_cast<double>(exact), 1.0, 1e-14);
}

TYPED_TEST(BlockSquares, CutsAtBlocksChangeNothing) {
  auto values = noise<TypeParam>(10'000, 9);
  auto whole = squares<TypeParam>(values);
  for (std::size_t cut : {1024u, 3072u, 9216u}) {
    auto pieces = squares<TypeParam>(std::span<const TypeParam>(values).first(cut));
    auto rest = squares<TypeParam>(std::span<const TypeParam>(values).subspan(cut));
    pieces.insert(pieces.end(), rest.begin(), rest.end());
    EXPECT_EQ(whole, pieces) << "cut at " << cut;
  }
}

TEST(BlockSquaresOfNothing, IsNothing) {
  std::vector<double> none;
  block_squares(std::span<const float>(), none);
  EXPECT_EQ(tree_sum(none), 0.0);
}

TEST(BlockSquaresOfFloats, DoNotOverflow) {
  std::vector<float> values(2000, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(tree_sum(squares<float>(values))));
}

TEST(TreeSum, IsTheBinaryTree) {
  for (std::size_t count = 1; count <= 130; ++count) {
    auto values = noise<double>(count, static_cast<unsigned>(count));
    EXPECT_EQ(tree_sum(values), tree_by_recursion(values)) << count << " values";
  }
}

TEST(TreeSum, AddsWhatIsLeftOverSmallestFirst) {
  // 7 values are (4) + ((2) + (1)); from the left it would be another number.
  std::vector<double> values{1, 0, 0, 0, 0x1p-53, 0, 0x1p-53};
  EXPECT_EQ(tree_sum(values), 1 + 0x1p-52);
  double from_left = 0;
  for (double value : values) from_left += value;
  EXPECT_NE(from_left, tree_sum(values));
}

TEST(ClipScale, FollowsTorch) {
  EXPECT_EQ(clip_scale(10.0, 0.0), 1.0);
  EXPECT_EQ(clip_scale(0.0, 1.0), 1.0);
  EXPECT_EQ(clip_scale(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_scale(10.0, 1.0), 1.0 / (10.0 + 1e-6));
  EXPECT_EQ(clip_scale(std::numeric_limits<double>::infinity(), 1.0), 0.0);
  EXPECT_TRUE(std::isnan(clip_scale(std::nan(""), 1.0)));
}

}  // namespace
}  // namespace yoke::optim
