// What ranks tell each other after backward, and what cannot be true.

#include "yoke/sync/summary.h"

#include <gmock/gmock.h>

#include <array>

#include "tests/support/spawn_ranks.h"
#include "yoke/base/error.h"

namespace yoke::sync {
namespace {

using testing::ElementsAre;

TEST(Summary, IsTheUnionOfWhatTheRanksSay) {
  test::run_threads(3, [](World world) {
    auto communicator = comm::Communicator::create(world);
    Summary summary({.tensors = 5, .integers = 3, .results = 2});
    for (int round = 0; round < 2; ++round) {
      summary.clear();
      const int me = world.rank();
      // Rank 1 has no micro-batch.
      if (me == 0) {
        summary.set_present(1);
        summary.add({.micro_batch = 0, .weight = 4, .loss = 0.5});
        summary.add({.micro_batch = 1, .weight = 4, .loss = 1.5});
      }
      if (me == 2) {
        summary.set_present(1);
        summary.set_present(4);
        if (round == 0) summary.set({.stop = true});
        if (round == 1) summary.set({.change = true});
        summary.add({.micro_batch = 2, .weight = 1, .loss = 2.5});
      }
      if (me != 1) {
        summary.integers()[2] = std::byte{7};
        summary.set_integers_valid();
      }
      summary.gather(*communicator, 3);
      std::vector<bool> present;
      for (std::size_t i = 0; i < 5; ++i) present.push_back(summary.present(i));
      EXPECT_THAT(present, ElementsAre(false, true, false, false, true));
      EXPECT_EQ(summary.wishes().stop, round == 0) << "a step does not remember the one before";
      EXPECT_EQ(summary.wishes().change, round == 1);
      const auto integers = summary.all_integers();
      ASSERT_EQ(integers.size(), 2u);
      EXPECT_EQ(integers[0].rank, 0);
      EXPECT_EQ(integers[1].rank, 2);
      EXPECT_EQ(integers[1].bytes[2], std::byte{7});
      ASSERT_EQ(summary.results().size(), 3u);
      for (std::int64_t v = 0; v < 3; ++v) {
        const auto& result = summary.results()[static_cast<std::size_t>(v)];
        EXPECT_EQ(result.micro_batch, v);
        EXPECT_EQ(result.rank, v < 2 ? 0 : 2);
        EXPECT_EQ(result.loss, 0.5 + static_cast<double>(v));
      }
    }
  });
}

/// What each of two ranks says that it computed, of 3 micro-batches.
void expect_refused(const std::array<std::vector<std::int64_t>, 2>& computed) {
  test::run_threads(2, [&](World world) {
    auto communicator = comm::Communicator::create(world);
    Summary summary({.tensors = 1, .results = 3});
    summary.clear();
    for (const std::int64_t v : computed[static_cast<std::size_t>(world.rank())])
      summary.add({.micro_batch = v, .weight = 1, .loss = 0});
    EXPECT_THROW(summary.gather(*communicator, 3), InternalError);
  });
}

TEST(Summary, AMicroBatchThatIsMissingOrStandsTwiceIsRefusedOnEveryRank) {
  expect_refused({{{0}, {2}}});
  expect_refused({{{0}, {1}}});
  expect_refused({{{}, {1, 2}}});
  expect_refused({{{0, 1}, {1, 2}}});
  expect_refused({{{0, 1}, {1}}});
  expect_refused({{{0, 1, 2}, {2}}});
}

TEST(Summary, OfABlockThatTwoHoldTheLowerRanksCounts) {
  test::run_threads(3, [](World world) {
    auto communicator = comm::Communicator::create(world);
    Summary summary({.tensors = 1, .results = 5, .blocks = 2, .checks = 1});
    for (int round = 0; round < 2; ++round) {
      summary.clear();
      const auto holds = [&](int level, std::int64_t index, int place) {
        summary.add({.level = level, .index = index, .owner = world.rank()}, place);
        for (std::int64_t v = index << level; v < std::min<std::int64_t>((index + 1) << level, 5); ++v)
          summary.add({.micro_batch = v, .weight = 1, .loss = 10.0 * world.rank()});
      };
      if (world.rank() == 0) holds(0, 4, 0);
      if (world.rank() == 1) holds(1, 1, 1), holds(1, 0, 0);
      if (world.rank() == 2) holds(1, 0, 0);
      if (world.rank() == 0) summary.add({.micro_batch = 0, .weight = 1, .loss = -1});  // given up
      summary.set_seconds(0.5 + world.rank());
      summary.add({.leaf = 7 - world.rank(), .input = 1, .bits = 2});
      summary.gather(*communicator, 5);
      EXPECT_THAT(summary.held().places, ElementsAre(0, 1, 0));
      std::vector<int> owners, computed;
      for (const auto& block : summary.held().plan.blocks()) owners.push_back(block.owner);
      for (const auto& result : summary.results()) computed.push_back(result.rank);
      EXPECT_THAT(owners, ElementsAre(1, 1, 0));
      EXPECT_THAT(computed, ElementsAre(1, 1, 1, 1, 0));
      EXPECT_THAT(summary.seconds(), ElementsAre(0.5, 1.5, 2.5));
      ASSERT_EQ(summary.checks().size(), 3u);
      EXPECT_EQ(summary.checks()[0].rank, 2) << "in the order of leaves";
    }
  });
}

TEST(Summary, MoreMicroBatchesThanThereIsRoomForAreABug) {
  Summary summary({.tensors = 1, .results = 1});
  summary.clear();
  summary.add({.micro_batch = 0, .weight = 1, .loss = 0});
  EXPECT_THROW(summary.add({.micro_batch = 1, .weight = 1, .loss = 0}), InternalError);
}

}  // namespace
}  // namespace yoke::sync
