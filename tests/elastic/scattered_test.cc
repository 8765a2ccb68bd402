// Placement in pieces: the order of turns, balls in bins, and the bound on blocks.

#include "yoke/elastic/placement/scattered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>

#include "tests/elastic/placed.h"
#include "yoke/base/error.h"

namespace yoke::elastic {
namespace {

using test::counts;
using test::owners;
using testing::ElementsAre;

std::vector<Worker> workers_of_weight(const std::vector<double>& weights) {
  std::vector<Worker> workers;
  for (const double weight : weights) workers.push_back({.weight = weight});
  return workers;
}

TEST(WeightedPlacement, MixesTheTurns) {
  // a a b a c a a
  EXPECT_THAT(owners(WeightedRoundRobin().place(7, workers_of_weight({5, 1, 1}), 0)),
              ElementsAre(0, 0, 1, 0, 2, 0, 0));
  EXPECT_THAT(owners(WeightedRoundRobin().place(6, workers_of_weight({1, 1, 1}), 0)),
              ElementsAre(0, 1, 2, 0, 1, 2));
}

RC_GTEST_PROP(WeightedPlacement, AfterTheSumOfTheWeightsEachHasItsOwn, ()) {
  std::vector<double> weights(*rc::gen::inRange<std::size_t>(1, 8));
  std::int64_t sum = 0;
  for (auto& weight : weights) {
    const int drawn = *rc::gen::inRange(0, 12);
    weight = drawn;
    sum += drawn;
  }
  RC_PRE(sum > 0);
  // So many pieces for each worker that every leaf is one.
  const auto got = counts(WeightedRoundRobin(1000).place(2 * sum, workers_of_weight(weights), 0));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    RC_ASSERT(static_cast<double>(got[i]) == 2 * weights[i]);
  }
}

constexpr int kBins = 1 << 16;

std::int64_t highest(const comm::BlockPlan& plan) {
  const auto got = counts(plan);
  return *std::max_element(got.begin(), got.end());
}

// Published and measured values for 2^16 balls in 2^16 bins: 7 to 9 with one choice, 3 to 4 with
// two, 3 with three.
TEST(RandomPlacement, FillsBinsAsRandomDoes) {
  const std::vector<Worker> workers(kBins);
  for (std::uint64_t step = 0; step < 5; ++step) {
    const auto most = highest(Random(1).place(kBins, workers, step));
    EXPECT_GE(most, 7);
    EXPECT_LE(most, 9);
  }
}

TEST(PowerOfChoicesPlacement, TwoChoicesAreFarBetterThanOne) {
  const std::vector<Worker> workers(kBins);
  for (std::uint64_t step = 0; step < 5; ++step) {
    const auto two = highest(PowerOfChoices(1, 2).place(kBins, workers, step));
    EXPECT_GE(two, 3);
    EXPECT_LE(two, 4);
    EXPECT_EQ(highest(PowerOfChoices(1, 3).place(kBins, workers, step)), 3);
  }
}

TEST(PowerOfChoicesPlacement, SparesWhoIsBusy) {
  std::vector<Worker> workers(4);
  workers[2].load = 1000;
  const auto got = counts(PowerOfChoices(3, 4, 64).place(256, workers, 0));
  // Only where all four lots fall on it: once in 256 pieces on average.
  EXPECT_LE(got[2], 8);
}

TEST(ScatteredPlacement, LotsDependOnSeedAndStepAlone) {
  const std::vector<Worker> workers(5);
  const auto once = owners(Random(1).place(100, workers, 3));
  EXPECT_EQ(owners(Random(1).place(100, workers, 3)), once);
  EXPECT_NE(owners(Random(1).place(100, workers, 4)), once);
  EXPECT_NE(owners(Random(2).place(100, workers, 3)), once);
}

RC_GTEST_PROP(ScatteredPlacement, HasNoMoreBlocksThanItSays, ()) {
  const auto leaves = *rc::gen::inRange<std::int64_t>(1, 5000);
  const auto workers = std::vector<Worker>(*rc::gen::inRange<std::size_t>(1, 20));
  const auto pieces = *rc::gen::inRange(1, 10);
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  const WeightedRoundRobin weighted(pieces);
  const Random random(seed, pieces);
  const PowerOfChoices choices(seed, 2, pieces);
  for (const PlacementPolicy* policy :
       std::vector<const PlacementPolicy*>{&weighted, &random, &choices}) {
    const auto plan = policy->place(leaves, workers, seed);
    RC_ASSERT(plan.leaves() == leaves);
    const auto bound = 2 * static_cast<std::uint64_t>(pieces) * workers.size() +
                       std::bit_width(static_cast<std::uint64_t>(leaves)) - 1;
    RC_ASSERT(plan.blocks().size() <= std::max<std::uint64_t>(1, bound));
  }
}

TEST(ScatteredPlacement, RefusesWhatCannotBe) {
  EXPECT_THROW(Random(1, 0), ConfigError);
  EXPECT_THROW(PowerOfChoices(1, 0), ConfigError);
  EXPECT_THROW(WeightedRoundRobin().place(4, workers_of_weight({0, 0}), 0), ConfigError);
}

}  // namespace
}  // namespace yoke::elastic
