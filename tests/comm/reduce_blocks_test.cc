// Sums over leaves that are placed at random, in ranges and scattered: the bits are those of one
// thread that counts.

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>

#include "tests/comm/sample.h"
#include "tests/support/spawn_ranks.h"
#include "yoke/comm/communicator.h"

namespace yoke::comm {
namespace {

using test::bytes_of;
using test::run_threads;

BlockPlan random_plan(std::int64_t leaves, int ranks, std::uint64_t seed) {
  std::vector<std::int64_t> cuts{0, leaves};
  for (int i = 1; i < ranks; ++i)
    cuts.push_back(static_cast<std::int64_t>(test::mix(i, seed) % (leaves + 1)));
  std::sort(cuts.begin(), cuts.end());
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (int i = 0; i < ranks; ++i) ranges.emplace_back(cuts[i], cuts[i + 1] - cuts[i]);
  return BlockPlan(std::move(ranges));
}

/// Each leaf of a random rank.
BlockPlan scattered_plan(std::int64_t leaves, int ranks, std::uint64_t seed) {
  std::vector<Block> blocks;
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
    const int owner = static_cast<int>(test::mix(leaf, seed) % ranks);
    blocks.push_back({.level = 0, .index = leaf, .owner = owner});
  }
  return BlockPlan::of_blocks(std::move(blocks), ranks);
}

template <typename T, typename Leaf>
std::vector<std::vector<T>> my_blocks(const BlockPlan& plan, int rank, std::size_t count,
                                      const Leaf& leaf) {
  std::vector<std::vector<T>> blocks;
  for (const int position : plan.positions_of(rank)) {
    const Block& block = plan.blocks()[position];
    auto& sum = blocks.emplace_back(count);
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] = test::counter_sum<T>(block.last() - block.first() + 1,
                                    [&](std::int64_t v) { return leaf(block.first() + v, i); });
    }
  }
  return blocks;
}

template <typename T>
std::vector<std::span<const std::byte>> spans(const std::vector<std::vector<T>>& blocks) {
  std::vector<std::span<const std::byte>> all;
  for (const auto& block : blocks) all.push_back(bytes_of(block));
  return all;
}

void check_random_plans(TransportKind transport, std::vector<Topology> topologies, int ranks,
                        int plans) {
  run_threads(ranks, [&](World world) {
    auto comm = Communicator::create(world, {.transport = transport});
    for (int n = 0; n < plans; ++n) {
      const std::uint64_t seed = test::mix(n, ranks);
      const auto leaves = static_cast<std::int64_t>(seed % 40 + 1);
      const BlockPlan plan =
          n % 2 == 0 ? random_plan(leaves, ranks, seed) : scattered_plan(leaves, ranks, seed);
      const std::size_t count = std::vector<std::size_t>{1, 1023, 1025, 5000}[n % 4];
      const auto leaf = [&](std::int64_t v, std::size_t i) {
        return test::element<float>(v, i, seed);
      };
      const auto mine = my_blocks<float>(plan, world.rank(), count, leaf);
      std::vector<float> want(count), out(count);
      for (std::size_t i = 0; i < count; ++i) {
        want[i] = test::counter_sum<float>(leaves, [&](std::int64_t v) { return leaf(v, i); });
      }
      for (const Topology topology : topologies) {
        std::fill(out.begin(), out.end(), 7.0f);
        comm->reduce_blocks(plan, spans(mine), bytes_of(out), DType::kFloat32, topology);
        ASSERT_TRUE(test::same_bits(out, want))
            << name_of(topology) << ", " << leaves << " leaves, plan " << n;
      }
    }
  });
}

TEST(ReduceBlocks, AnyPlacementGivesTheBitsOfTheCounter) {
  for (int ranks = 1; ranks <= 8; ++ranks) {
    check_random_plans(TransportKind::kSharedMemory,
                       {Topology::kAuto, Topology::kTree, Topology::kFullMesh}, ranks, 12);
  }
}

TEST(ReduceBlocks, OverTcpToo) {
  for (const int ranks : {1, 2, 4}) {
    check_random_plans(TransportKind::kTcp, {Topology::kAuto, Topology::kTree}, ranks, 8);
  }
}

TEST(ReduceBlocks, LongBlocksGoThroughInChunks) {
  run_threads(3, [&](World world) {
    auto comm = Communicator::create(world);
    const BlockPlan plan = scattered_plan(11, 3, 1);
    const std::size_t count = 100003;
    const auto leaf = [&](std::int64_t v, std::size_t i) { return test::element<double>(v, i); };
    const auto mine = my_blocks<double>(plan, world.rank(), count, leaf);
    std::vector<double> want(count), out(count);
    for (std::size_t i = 0; i < count; ++i) {
      want[i] = test::counter_sum<double>(11, [&](std::int64_t v) { return leaf(v, i); });
    }
    for (const Topology topology : {Topology::kAuto, Topology::kTree, Topology::kFullMesh}) {
      comm->reduce_blocks(plan, spans(mine), bytes_of(out), DType::kFloat64, topology);
      ASSERT_TRUE(test::same_bits(out, want)) << name_of(topology);
    }
  });
}

TEST(ReduceBlocks, NegativeZerosStayAlsoWhenRanksHoldNothing) {
  const int ranks = 5;
  run_threads(ranks, [&](World world) {
    auto comm = Communicator::create(world);
    for (const std::int64_t leaves : {1, 2, 3, 11}) {
      const BlockPlan plan = BlockPlan::even(leaves, ranks);
      const std::size_t count = 2000;
      const std::vector<std::vector<float>> mine(plan.blocks_of(world.rank()).second,
                                                 std::vector<float>(count, -0.0f));
      for (const Topology topology :
           {Topology::kAuto, Topology::kTree, Topology::kRing, Topology::kFullMesh}) {
        std::vector<float> out(count, 1.0f);
        comm->reduce_blocks(plan, spans(mine), bytes_of(out), DType::kFloat32, topology);
        for (const float value : out) {
          ASSERT_TRUE(value == 0 && std::signbit(value))
              << name_of(topology) << ", " << leaves << " leaves";
        }
      }
    }
  });
}

TEST(ReduceBlocks, TheRingAddsTheSameNumbersInAnotherOrder) {
  const int ranks = 4;
  std::mutex mutex;
  std::vector<std::vector<float>> results;
  run_threads(ranks, [&](World world) {
    auto comm = Communicator::create(world);
    const BlockPlan plan = BlockPlan::even(13, ranks);
    const std::size_t count = 3001;
    const auto leaf = [&](std::int64_t v, std::size_t i) { return test::element<float>(v, i); };
    const auto mine = my_blocks<float>(plan, world.rank(), count, leaf);
    std::vector<float> out(count);
    comm->reduce_blocks(plan, spans(mine), bytes_of(out), DType::kFloat32, Topology::kRing);
    for (std::size_t i = 0; i < count; ++i) {
      double exact = 0, magnitude = 0;
      for (int v = 0; v < 13; ++v) {
        exact += leaf(v, i);
        magnitude += std::abs(leaf(v, i));
      }
      ASSERT_NEAR(out[i], exact, 13 * 0x1p-23 * magnitude);
    }
    const std::lock_guard lock(mutex);
    results.push_back(out);
  });
  for (const auto& result : results) EXPECT_TRUE(test::same_bits(result, results[0]));
}

}  // namespace
}  // namespace yoke::comm
