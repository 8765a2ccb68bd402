// Blocks that free workers draw: each leaf once, whoever is slow; what is repeated, and when it may
// be dropped.

#include "yoke/elastic/placement/leaf_draws.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <mutex>
#include <thread>

#include "tests/support/spawn_ranks.h"
#include "yoke/base/random.h"

namespace yoke::elastic {
namespace {

using comm::TransportKind;

std::unique_ptr<LeafDraws> draws_of(const World& world, comm::Communicator& communicator,
                                    std::int64_t most_leaves) {
  const int most = LeafDraws::most_draws(most_leaves, world.size());
  return std::make_unique<LeafDraws>(
      DrawBoard::make(world, communicator, most, std::chrono::seconds(30)), world.size());
}

TEST(LeafDraws, EachLeafIsDrawnOnceAndRepeatedOnceAtMost) {
  for (const auto transport : {TransportKind::kSharedMemory, TransportKind::kTcp}) {
    for (const int ranks : {1, 3}) {
      std::mutex mutex;
      std::map<std::pair<int, std::int64_t>, int> drawn, repeated, kept;  // by step and leaf
      const std::vector<std::int64_t> steps{1, 40, 40, 7, 40, 2};
      test::run_threads(ranks, [&](World world) {
        auto communicator = comm::Communicator::create(world, {.transport = transport});
        const auto draws = draws_of(world, *communicator, 40);
        for (int step = 0; step < static_cast<int>(steps.size()); ++step) {
          draws->begin(steps[static_cast<std::size_t>(step)]);
          while (const auto draw = draws->next()) {
            if (RandomKey(static_cast<std::uint64_t>(draw->block.first()))
                        .with(static_cast<std::uint64_t>(world.rank()))
                        .bits(0) % 4 == 0)
              std::this_thread::sleep_for(std::chrono::microseconds(200));
            const bool dropped = draws->overtaken();
            if (!dropped) draws->finish();
            const std::lock_guard lock(mutex);
            for (std::int64_t leaf = draw->block.first();
                 leaf < draw->block.first() + draw->block.count(); ++leaf) {
              ++(draw->backup ? repeated : drawn)[{step, leaf}];
              if (!dropped) ++kept[{step, leaf}];
            }
          }
          communicator->barrier();
        }
      });
      std::size_t leaves = 0;
      for (int step = 0; step < static_cast<int>(steps.size()); ++step) {
        for (std::int64_t leaf = 0; leaf < steps[static_cast<std::size_t>(step)]; ++leaf) {
          const std::pair at{step, leaf};
          EXPECT_EQ(drawn[at], 1) << "step " << step << ", leaf " << leaf;
          EXPECT_GE(kept[at], 1) << "step " << step << ", leaf " << leaf;
          if (transport == TransportKind::kSharedMemory) {
            EXPECT_LE(repeated[at], 1);
          }
          ++leaves;
        }
      }
      EXPECT_EQ(drawn.size(), leaves) << "nothing beyond the step";
    }
  }
}

TEST(LeafDraws, AnIdleWorkerRepeatsTheOldestThatIsNotDoneAndItsHolderLearnsOfIt) {
  for (const auto transport : {TransportKind::kSharedMemory, TransportKind::kTcp}) {
    test::run_threads(2, [&](World world) {
      auto communicator = comm::Communicator::create(world, {.transport = transport});
      const auto draws = draws_of(world, *communicator, 8);
      for (int round = 0; round < 2; ++round) {
        draws->begin(8);
        const bool is_slow = world.rank() == 1;
        std::optional<LeafDraws::Draw> first;
        if (is_slow) {
          first = draws->next();
          ASSERT_TRUE(first && !first->backup);
          EXPECT_FALSE(draws->overtaken());
        }
        communicator->barrier();
        if (!is_slow) {
          auto draw = draws->next();
          for (; draw && !draw->backup; draw = draws->next()) draws->finish();
          ASSERT_TRUE(draw) << "the other's block is repeated";
          EXPECT_EQ(draw->block.first(), 0);
          draws->finish();
          EXPECT_FALSE(draws->next()) << "all is done";
        }
        communicator->barrier();
        if (is_slow) {
          EXPECT_TRUE(draws->overtaken());
          EXPECT_FALSE(draws->next());
        }
        communicator->barrier();
      }
    });
  }
}

}  // namespace
}  // namespace yoke::elastic
