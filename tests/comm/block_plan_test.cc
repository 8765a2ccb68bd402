#include "yoke/comm/block_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "tests/comm/sample.h"
#include "yoke/base/error.h"

namespace yoke::comm {
namespace {

using test::bytes_of;

/// Ranges of `ranks` ranks over `leaves` leaves, cut at random; ranks may get none.
std::vector<std::pair<std::int64_t, std::int64_t>> random_ranges(std::int64_t leaves, int ranks,
                                                                 std::uint64_t seed) {
  std::vector<std::int64_t> cuts{0, leaves};
  for (int i = 1; i < ranks; ++i)
    cuts.push_back(static_cast<std::int64_t>(test::mix(i, seed) % (leaves + 1)));
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (int i = 0; i < ranks; ++i) ranges.emplace_back(cuts[i], cuts[i + 1] - cuts[i]);
  return ranges;
}

/// Aligned blocks of up to eight leaves, each of a random rank, in random order.
std::vector<Block> scattered_blocks(std::int64_t leaves, int ranks, std::uint64_t seed) {
  std::vector<Block> blocks;
  for (std::int64_t leaf = 0; leaf < leaves;) {
    int level = static_cast<int>(test::mix(leaf, seed, 1) % 4);
    while ((leaf & ((std::int64_t{1} << level) - 1)) != 0 ||
           leaf + (std::int64_t{1} << level) > leaves) {
      --level;
    }
    const int owner = static_cast<int>(test::mix(leaf, seed, 2) % ranks);
    blocks.push_back({.level = level, .index = leaf >> level, .owner = owner});
    leaf += std::int64_t{1} << level;
  }
  for (std::size_t i = blocks.size(); i > 1; --i) {
    std::swap(blocks[i - 1], blocks[test::mix(i, seed, 3) % i]);
  }
  return blocks;
}

/// The sums of the plan's blocks; each block is a whole counter, so the oracle's order within it is
/// the plan's.
template <typename T>
std::vector<std::vector<T>> block_sums(const BlockPlan& plan, std::size_t count,
                                       std::uint64_t seed) {
  std::vector<std::vector<T>> sums;
  for (const Block& block : plan.blocks()) {
    auto& sum = sums.emplace_back(count);
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] = test::counter_sum<T>(block.last() - block.first() + 1, [&](std::int64_t leaf) {
        return test::element<T>(block.first() + leaf, i, seed);
      });
    }
  }
  return sums;
}

template <typename T>
std::vector<T> serial(std::int64_t leaves, std::size_t count, std::uint64_t seed) {
  std::vector<T> sum(count);
  for (std::size_t i = 0; i < count; ++i) {
    sum[i] = test::counter_sum<T>(
        leaves, [&](std::int64_t leaf) { return test::element<T>(leaf, i, seed); });
  }
  return sum;
}

template <typename T>
std::vector<const std::byte*> pointers(const std::vector<std::vector<T>>& operands) {
  std::vector<const std::byte*> places;
  for (const auto& operand : operands) places.push_back(bytes_of(operand).data());
  return places;
}

TEST(BlockPlan, BlocksAreTheLargestAlignedOnesAndCoverTheLeaves) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto leaves = static_cast<std::int64_t>(test::mix(seed, 1) % 100 + 1);
    const int ranks = static_cast<int>(test::mix(seed, 2) % 8 + 1);
    const BlockPlan plan(random_ranges(leaves, ranks, seed));
    std::int64_t next = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto [first, held] = plan.blocks_of(rank);
      const auto [range_first, range_count] = plan.range_of(rank);
      for (int i = first; i < first + held; ++i) {
        const Block& block = plan.blocks()[i];
        ASSERT_EQ(block.owner, rank);
        ASSERT_EQ(block.first(), next);
        next = block.last() + 1;
        // Twice as large would be unaligned or outside the range.
        const std::int64_t twice = std::int64_t{2} << block.level;
        const std::int64_t start = block.first() / twice * twice;
        ASSERT_TRUE(start < range_first || start + twice > range_first + range_count);
      }
      ASSERT_EQ(held == 0 ? next : range_first + range_count, next);
      ASSERT_LE(held, plan.most_blocks());
    }
    ASSERT_EQ(next, leaves);
    ASSERT_EQ(plan.additions().size() + 1, plan.blocks().size());
  }
}

TEST(BlockPlan, CountsOperandsAsTheDesignSays) {
  EXPECT_EQ(BlockPlan::even(64, 4).blocks().size(), 4u);
  const auto three = BlockPlan::even(64, 3).blocks().size();
  EXPECT_GE(three, 11u);
  EXPECT_LE(three, 12u);
}

RC_GTEST_PROP(BlockPlan, AnyPlacementGivesTheBitsOfTheCounter, ()) {
  const auto leaves = *rc::gen::inRange<std::int64_t>(1, 41);
  const auto ranks = *rc::gen::inRange(1, 9);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto count = *rc::gen::element<std::size_t>(1, 7, 64, 2500);
  const BlockPlan plan(random_ranges(leaves, ranks, seed));
  const auto sums = block_sums<float>(plan, count, seed);
  std::vector<float> out(count);
  plan.evaluate(pointers(sums), bytes_of(out).data(), count, DType::kFloat32);
  RC_ASSERT(test::same_bits(out, serial<float>(leaves, count, seed)));
}

RC_GTEST_PROP(BlockPlan, ScatteredBlocksGiveTheBitsOfTheCounter, ()) {
  const auto leaves = *rc::gen::inRange<std::int64_t>(1, 70);
  const auto ranks = *rc::gen::inRange(1, 9);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const auto count = *rc::gen::element<std::size_t>(1, 7, 64, 2500);
  const auto plan = BlockPlan::of_blocks(scattered_blocks(leaves, ranks, seed), ranks);
  const auto sums = block_sums<float>(plan, count, seed);
  std::vector<float> out(count);
  plan.evaluate(pointers(sums), bytes_of(out).data(), count, DType::kFloat32);
  RC_ASSERT(test::same_bits(out, serial<float>(leaves, count, seed)));
}

TEST(BlockPlan, ScatteredBlocksAreListedByOwnerEachOnce) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto leaves = static_cast<std::int64_t>(test::mix(seed, 1) % 100 + 1);
    const int ranks = static_cast<int>(test::mix(seed, 2) % 8 + 1);
    const auto given = scattered_blocks(leaves, ranks, seed);
    const auto plan = BlockPlan::of_blocks(given, ranks);
    std::vector<int> owner_of(leaves, -1);
    for (const Block& block : given) {
      std::fill_n(owner_of.begin() + block.first(), 1 << block.level, block.owner);
    }
    std::vector<bool> seen(plan.blocks().size());
    int most = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      const auto positions = plan.positions_of(rank);
      ASSERT_TRUE(std::is_sorted(positions.begin(), positions.end()));
      ASSERT_EQ(static_cast<int>(positions.size()), plan.held_by(rank));
      most = std::max(most, plan.held_by(rank));
      for (std::size_t i = 0; i < positions.size(); ++i) {
        const Block& block = plan.blocks()[positions[i]];
        ASSERT_FALSE(seen[positions[i]]);
        seen[positions[i]] = true;
        ASSERT_EQ(block.owner, rank);
        ASSERT_EQ(plan.place_at_owner(positions[i]), static_cast<int>(i));
        for (auto leaf = block.first(); leaf <= block.last(); ++leaf) {
          ASSERT_EQ(owner_of[leaf], rank);
        }
        // The neighbour that would complete a larger block is another's, or none's.
        const auto neighbour = (block.index ^ 1) << block.level;
        const auto end = neighbour + (std::int64_t{1} << block.level);
        ASSERT_FALSE(end <= leaves &&
                     std::all_of(owner_of.begin() + neighbour, owner_of.begin() + end,
                                 [&](int owner) { return owner == rank; }));
      }
    }
    ASSERT_EQ(most, plan.most_blocks());
    ASSERT_TRUE(std::all_of(seen.begin(), seen.end(), [](bool yes) { return yes; }));
    ASSERT_EQ(plan.leaves(), leaves);
  }
}

TEST(BlockPlan, BlocksThatAreContiguousGiveThePlanOfTheirRanges) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto leaves = static_cast<std::int64_t>(test::mix(seed, 1) % 60 + 1);
    const BlockPlan ranges(random_ranges(leaves, 4, seed));
    std::vector<Block> leaf_by_leaf;
    for (int rank = 0; rank < 4; ++rank) {
      const auto [first, count] = ranges.range_of(rank);
      for (auto leaf = first; leaf < first + count; ++leaf) {
        leaf_by_leaf.push_back({.level = 0, .index = leaf, .owner = rank});
      }
    }
    const auto plan = BlockPlan::of_blocks(leaf_by_leaf, 4);
    ASSERT_TRUE(plan.contiguous());
    ASSERT_TRUE(std::equal(plan.blocks().begin(), plan.blocks().end(), ranges.blocks().begin(),
                           ranges.blocks().end()));
    ASSERT_EQ(plan.fingerprint(), ranges.fingerprint());
    for (int rank = 0; rank < 4; ++rank) {
      ASSERT_EQ(plan.range_of(rank).second, ranges.range_of(rank).second);
      ASSERT_EQ(plan.blocks_of(rank), ranges.blocks_of(rank));
    }
  }
}

TEST(BlockPlan, AScatteredPlanHasNoRanges) {
  const auto plan = BlockPlan::of_blocks({{0, 0, 0}, {0, 1, 1}, {0, 2, 0}}, 2);
  EXPECT_FALSE(plan.contiguous());
  EXPECT_THROW(plan.range_of(0), InternalError);
  EXPECT_THROW(plan.blocks_of(0), InternalError);
  EXPECT_EQ(plan.held_by(0), 2);
}

TEST(BlockPlan, RefusesBlocksWithHolesOverlapsAndStrangers) {
  EXPECT_THROW(BlockPlan::of_blocks({{0, 1, 0}}, 1), InternalError);
  EXPECT_THROW(BlockPlan::of_blocks({{0, 0, 0}, {0, 2, 0}}, 1), InternalError);
  EXPECT_THROW(BlockPlan::of_blocks({{1, 0, 0}, {0, 1, 0}}, 1), InternalError);
  EXPECT_THROW(BlockPlan::of_blocks({{0, 0, 0}, {0, 0, 1}}, 2), InternalError);
  EXPECT_THROW(BlockPlan::of_blocks({{0, 0, 2}}, 2), InternalError);
  EXPECT_NO_THROW(BlockPlan::of_blocks({}, 2));
}

TEST(BlockPlan, TheOutputMayBeAnyOperand) {
  for (const int blocks : {1, 2, 3, 4, 5, 7, 8}) {
    const BlockPlan plan = BlockPlan::even(blocks, blocks);
    const std::size_t count = 5000;
    const auto want = serial<double>(blocks, count, 3);
    for (int target = 0; target < blocks; ++target) {
      auto operands = block_sums<double>(plan, count, 3);
      plan.evaluate(pointers(operands), bytes_of(operands[target]).data(), count, DType::kFloat64);
      ASSERT_TRUE(test::same_bits(operands[target], want)) << target << " of " << blocks;
    }
  }
}

TEST(BlockPlan, NegativeZerosStay) {
  for (const int ranks : {1, 2, 3, 4, 6}) {
    const BlockPlan plan = BlockPlan::even(ranks, ranks);
    const std::vector<std::vector<float>> operands(ranks, std::vector<float>(100, -0.0f));
    std::vector<float> out(100, 1.0f);
    plan.evaluate(pointers(operands), bytes_of(out).data(), 100, DType::kFloat32);
    for (const float value : out) ASSERT_TRUE(value == 0 && std::signbit(value)) << ranks;
  }
}

TEST(BlockPlan, FoldKnowsEveryOperation) {
  const BlockPlan plan = BlockPlan::even(5, 5);
  std::vector<std::vector<std::int64_t>> operands;
  for (int i = 0; i < 5; ++i) operands.push_back(test::elements<std::int64_t>(i, 3000));
  std::vector<std::int64_t> out(3000);
  plan.fold(pointers(operands), bytes_of(out).data(), 3000, DType::kInt64, ReduceOp::kMax);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::int64_t most = operands[0][i];
    for (const auto& operand : operands) most = std::max(most, operand[i]);
    ASSERT_EQ(out[i], most);
  }
}

TEST(BlockPlan, RefusesRangesWithHolesAndOperandsThatDoNotFit) {
  using Ranges = std::vector<std::pair<std::int64_t, std::int64_t>>;
  EXPECT_THROW(BlockPlan(Ranges{{0, 2}, {3, 1}}), InternalError);
  EXPECT_THROW(BlockPlan(Ranges{{1, 2}}), InternalError);
  EXPECT_THROW(BlockPlan(Ranges{{0, -1}}), InternalError);
  EXPECT_NO_THROW(BlockPlan(Ranges{{0, 2}, {0, 0}, {2, 1}}));
  const BlockPlan plan = BlockPlan::even(2, 2);
  float value = 0;
  const auto* place = reinterpret_cast<const std::byte*>(&value);
  EXPECT_THROW(plan.evaluate(std::vector{place}, nullptr, 1, DType::kFloat32), InternalError);
  EXPECT_THROW(plan.evaluate(std::vector{place, place}, nullptr, 1, DType::kInt32), InternalError);
}

TEST(BlockPlan, FingerprintsTellPlansApart) {
  EXPECT_EQ(BlockPlan::even(8, 3).fingerprint(), BlockPlan::even(8, 3).fingerprint());
  EXPECT_NE(BlockPlan::even(8, 3).fingerprint(), BlockPlan::even(8, 4).fingerprint());
  EXPECT_NE(BlockPlan::even(8, 3).fingerprint(), BlockPlan({{0, 3}, {3, 2}, {5, 3}}).fingerprint());
}

}  // namespace
}  // namespace yoke::comm
