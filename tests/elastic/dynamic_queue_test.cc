// Draws that the test makes in an order of its own: every leaf is computed, counted once, and
// computed anew when its worker is lost.

#include "yoke/elastic/placement/dynamic_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <thread>

#include "tests/elastic/placed.h"
#include "yoke/base/error.h"

namespace yoke::elastic {
namespace {

using test::owners;
using testing::Each;
using testing::ElementsAre;
using Verdict = DynamicQueue::Verdict;

std::vector<std::int64_t> sizes_drawn(DynamicQueue& queue, int workers) {
  std::vector<std::int64_t> sizes;
  for (int turn = 0;; ++turn) {
    const auto draw = queue.draw(turn % workers);
    if (!draw || draw->backup) return sizes;
    sizes.push_back(draw->block.count());
  }
}

TEST(DynamicQueue, LargeBlocksFirstSingleLeavesAtTheEnd) {
  DynamicQueue queue(64, 2, {.backup = false});
  // A quarter of what is left, rounded down to a power of two: 64, 48, 40, 32, 24, 20, 16 ...
  EXPECT_THAT(sizes_drawn(queue, 2), ElementsAre(16, 8, 8, 8, 4, 4, 4, 2, 2, 2, 1, 1, 1, 1, 1, 1));
}

TEST(DynamicQueue, ShareOneIsGuidedSelfScheduling) {
  DynamicQueue queue(32, 2, {.share = 1, .backup = false});
  EXPECT_THAT(sizes_drawn(queue, 2), ElementsAre(16, 8, 4, 2, 1, 1));
}

TEST(DynamicQueue, MakesNoMoreDrawsThanItSays) {
  for (const int workers : {1, 2, 3, 7, 16, 100}) {
    for (const std::int64_t leaves : {1, 5, 64, 127, 1000, 4096, 99'999}) {
      DynamicQueue queue(leaves, workers, {.backup = false});
      const double ratio = std::max(1.0, static_cast<double>(leaves) / workers);
      EXPECT_LE(static_cast<double>(sizes_drawn(queue, workers).size()),
                4 * workers * (1 + std::log(ratio)))
          << leaves << " leaves, " << workers << " workers";
    }
  }
}

TEST(DynamicQueue, ThePlanSaysWhoHoldsWhat) {
  DynamicQueue queue(8, 2, {.backup = false});
  for (int turn = 0; !queue.done(); ++turn) {
    const auto draw = queue.draw(turn < 2 ? 0 : 1);
    ASSERT_TRUE(draw);
    EXPECT_EQ(queue.finish(turn < 2 ? 0 : 1, draw->block), Verdict::kCounts);
  }
  const auto plan = queue.plan();
  EXPECT_THAT(owners(plan), ElementsAre(0, 0, 0, 1, 1, 1, 1, 1));
  // Draws of 2, 1, 1, 1 ... leaves: those of one worker that are neighbours became one block.
  EXPECT_EQ(plan.held_by(0), 2);
  EXPECT_EQ(plan.held_by(1), 2);
}

TEST(DynamicQueue, ABackupRepeatsTheBlockThatWasDrawnFirst) {
  DynamicQueue queue(4, 3);
  const auto slow = queue.draw(0);
  const auto other = queue.draw(1);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(queue.finish(2, queue.draw(2)->block), Verdict::kCounts);
  const auto backup = queue.draw(2);
  ASSERT_TRUE(backup && backup->backup);
  EXPECT_EQ(backup->block, slow->block);
  // Each block is repeated once, and not by the one who has it.
  EXPECT_EQ(queue.draw(2)->block, other->block);
  EXPECT_FALSE(queue.draw(2));
  EXPECT_FALSE(queue.draw(1));
  EXPECT_EQ(queue.finish(2, backup->block, 77), Verdict::kCounts);
  EXPECT_EQ(queue.finish(0, slow->block, 77), Verdict::kSecond);
  EXPECT_EQ(queue.finish(1, other->block, 5), Verdict::kCounts);
  EXPECT_EQ(queue.finish(2, other->block, 6), Verdict::kDiffers);
  EXPECT_TRUE(queue.done());
  EXPECT_THAT(owners(queue.plan()), ElementsAre(2, 1, 2, 2));
}

TEST(DynamicQueue, WithoutBackupAnIdleWorkerGetsNothing) {
  DynamicQueue queue(1, 2, {.backup = false});
  const auto only = queue.draw(0);
  EXPECT_FALSE(queue.draw(1));
  EXPECT_FALSE(queue.done());
  queue.finish(0, only->block);
  EXPECT_TRUE(queue.done());
}

TEST(DynamicQueue, WhatALostWorkerHeldAndHadFinishedIsDrawnAnew) {
  DynamicQueue queue(8, 2, {.backup = false});
  const auto first = queue.draw(0);
  const auto second = queue.draw(0);
  EXPECT_EQ(queue.finish(0, first->block), Verdict::kCounts);
  queue.lost(0);
  EXPECT_EQ(queue.finish(0, second->block), Verdict::kLost);
  EXPECT_FALSE(queue.draw(0));
  while (const auto draw = queue.draw(1)) queue.finish(1, draw->block);
  EXPECT_TRUE(queue.done());
  EXPECT_THAT(owners(queue.plan()), Each(1));
}

TEST(DynamicQueue, AResultMayOutliveItsWorker) {
  DynamicQueue queue(4, 2, {.backup = false});
  const auto first = queue.draw(0);
  const auto second = queue.draw(0);
  queue.finish(0, first->block);
  queue.lost(0, true);
  // The second block is free again, and lies first.
  EXPECT_EQ(queue.draw(1)->block.first(), second->block.first());
}

TEST(DynamicQueue, ALostWorkersBlockStaysWithWhoRepeatsIt) {
  DynamicQueue queue(1, 3);
  const auto block = queue.draw(0)->block;
  EXPECT_TRUE(queue.draw(1)->backup);
  queue.lost(0);
  // Now it may be repeated again.
  EXPECT_TRUE(queue.draw(2)->backup);
  EXPECT_EQ(queue.finish(1, block), Verdict::kCounts);
  EXPECT_EQ(queue.finish(2, block), Verdict::kSecond);
  EXPECT_THAT(owners(queue.plan()), ElementsAre(1));
}

TEST(DynamicQueue, RefusesWhatCannotBe) {
  EXPECT_THROW(DynamicQueue(4, 0), ConfigError);
  EXPECT_THROW(DynamicQueue(4, 2, {.share = 0}), ConfigError);
  DynamicQueue queue(4, 2);
  const auto block = queue.draw(0)->block;
  EXPECT_THROW(queue.finish(1, block), InternalError);
  EXPECT_THROW(queue.finish(0, {.level = block.level + 1, .index = 0}), InternalError);
  EXPECT_THROW(queue.plan(), InternalError);
  EXPECT_THROW(queue.draw(2), InternalError);
}

/// Any order of draws, ends and deaths: the step ends with each leaf held by a living worker that
/// finished it.
RC_GTEST_PROP(DynamicQueue, AnyOrderOfDrawsEndsAndDeathsCountsEveryLeafOnce, ()) {
  const auto leaves = *rc::gen::inRange<std::int64_t>(0, 200);
  const auto workers = *rc::gen::inRange(1, 7);
  DynamicQueue queue(leaves, workers, {.share = *rc::gen::inRange(1, 4)});
  std::vector<std::vector<LeafBlock>> held(workers);
  std::vector<int> living(workers);
  std::iota(living.begin(), living.end(), 0);
  // Who has finished which leaf, and is living.
  std::vector<std::vector<bool>> finished(workers, std::vector<bool>(leaves));
  int dice = 0;
  for (int turn = 0; !queue.done(); ++turn) {
    dice =
        static_cast<int>((dice * 31u + static_cast<unsigned>(*rc::gen::inRange(0, 1000))) % 1000);
    const std::size_t chosen = static_cast<std::size_t>(dice) % living.size();
    const int worker = living[chosen];
    if (dice % 50 == 49 && living.size() > 1) {
      queue.lost(worker);
      living.erase(living.begin() + static_cast<std::ptrdiff_t>(chosen));
      finished[worker].assign(leaves, false);
    } else if (dice % 2 == 0 || held[worker].empty()) {
      if (const auto draw = queue.draw(worker)) held[worker].push_back(draw->block);
    } else {
      const auto block = held[worker].back();
      held[worker].pop_back();
      const auto verdict = queue.finish(worker, block);
      RC_ASSERT(verdict == Verdict::kCounts || verdict == Verdict::kSecond);
      if (verdict == Verdict::kSecond) continue;
      std::fill_n(finished[worker].begin() + block.first(), block.count(), true);
    }
  }
  const auto owner = owners(queue.plan());
  for (std::int64_t leaf = 0; leaf < leaves; ++leaf) {
    RC_ASSERT(finished[owner[leaf]][leaf]);
    int times = 0;
    for (const auto& of_worker : finished) times += of_worker[leaf] ? 1 : 0;
    RC_ASSERT(times == 1);
  }
}

TEST(DynamicQueue, ThreadsMayDrawAtOnce) {
  constexpr int kWorkers = 4;
  DynamicQueue queue(20'000, kWorkers);
  {
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([&, worker] {
        while (!queue.done()) {
          if (const auto draw = queue.draw(worker)) queue.finish(worker, draw->block, 1);
        }
      });
    }
  }
  EXPECT_EQ(queue.plan().leaves(), 20'000);
}

}  // namespace
}  // namespace yoke::elastic
