// Placement in ranges: counts by closed form, and few blocks a worker.

#include "yoke/elastic/placement/contiguous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/elastic/placed.h"
#include "yoke/base/error.h"

namespace yoke::elastic {
namespace {

using test::counts;
using test::workers_of_speed;
using testing::ElementsAre;

std::vector<Worker> random_workers() {
  std::vector<Worker> workers(*rc::gen::inRange<std::size_t>(1, 20));
  for (auto& worker : workers) {
    worker.weight = *rc::gen::inRange(1, 10);
    worker.speed = *rc::gen::inRange(1, 1000) / 100.0;
    worker.load = *rc::gen::inRange(0, 50);
  }
  return workers;
}

RC_GTEST_PROP(ContiguousPlacement, IsOneRangeAWorkerOfFewBlocks, ()) {
  const auto leaves = *rc::gen::inRange<std::int64_t>(0, 3000);
  const auto workers = random_workers();
  const RoundRobin round_robin;
  const LeastLoaded least_loaded;
  const Proportional proportional;
  for (const PlacementPolicy* policy :
       std::vector<const PlacementPolicy*>{&round_robin, &least_loaded, &proportional}) {
    const auto plan = policy->place(leaves, workers, 7);
    RC_ASSERT(plan.contiguous());
    RC_ASSERT(plan.leaves() == leaves);
    RC_ASSERT(plan.ranks() == static_cast<int>(workers.size()));
    for (int worker = 0; worker < plan.ranks(); ++worker) {
      const auto count = static_cast<std::uint64_t>(plan.range_of(worker).second);
      const int log = static_cast<int>(std::bit_width(count)) - 1;
      if (count == 0) continue;
      RC_ASSERT(plan.held_by(worker) <= std::max(1, 2 * log));
    }
  }
}

TEST(ContiguousPlacement, TheBoundOnBlocksIsReached) {
  // 1 .. 14: 1, 2-3, 4-7, 8-11, 12-13, 14.
  EXPECT_EQ(comm::BlockPlan({{0, 1}, {1, 14}}).held_by(1), 6);
}

TEST(RoundRobinPlacement, IsAsEvenAsCanBe) {
  const std::vector<Worker> workers(3);
  EXPECT_THAT(counts(RoundRobin().place(64, workers, 0)), ElementsAre(21, 21, 22));
  EXPECT_THAT(counts(RoundRobin().place(2, workers, 0)), ElementsAre(0, 1, 1));
}

TEST(LeastLoadedPlacement, FillsUpToOneLevel) {
  std::vector<Worker> workers(4);
  workers[0].load = 10;
  workers[2].load = 4;
  // 12 leaves fill the other three to (12 + 4) / 3.
  EXPECT_THAT(counts(LeastLoaded().place(12, workers, 0)), ElementsAre(0, 6, 1, 5));
  // 40 leaves: all end at (40 + 14) / 4 = 13.5.
  EXPECT_THAT(counts(LeastLoaded().place(40, workers, 0)), ElementsAre(4, 14, 9, 13));
}

RC_GTEST_PROP(LeastLoadedPlacement, HasTheLowestPeak, ()) {
  const auto leaves = *rc::gen::inRange<std::int64_t>(1, 500);
  const auto workers = random_workers();
  const auto got = counts(LeastLoaded().place(leaves, workers, 0));
  // A lower peak would have room for fewer leaves than there are.
  double peak = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] > 0) peak = std::max(peak, workers[i].load + static_cast<double>(got[i]));
  }
  std::int64_t room = 0;
  for (const auto& worker : workers) {
    room += std::max<std::int64_t>(0, static_cast<std::int64_t>(peak - 1 - worker.load));
  }
  RC_ASSERT(room < leaves);
}

TEST(ProportionalPlacement, OneOfFourAtHalfSpeed) {
  EXPECT_THAT(counts(Proportional().place(128, workers_of_speed({1, 1, 1, 0.5}), 0)),
              ElementsAre(37, 37, 36, 18));
  EXPECT_THAT(counts(Proportional().place(70, workers_of_speed({4, 2, 1}), 0)),
              ElementsAre(40, 20, 10));
}

TEST(ProportionalPlacement, AWorkerOfSpeedZeroGetsNothing) {
  EXPECT_THAT(counts(Proportional().place(10, workers_of_speed({0, 1, 1}), 0)),
              ElementsAre(0, 5, 5));
}

RC_GTEST_PROP(ProportionalPlacement, NoOtherCountsAreDoneEarlier, ()) {
  const auto leaves = *rc::gen::inRange<std::int64_t>(1, 500);
  const auto workers = random_workers();
  const auto got = counts(Proportional().place(leaves, workers, 0));
  double end = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    end = std::max(end, static_cast<double>(got[i]) / workers[i].speed);
  }
  // In any less time all of them together do not get through.
  std::int64_t possible = 0;
  for (const auto& worker : workers) {
    possible += static_cast<std::int64_t>(std::floor(end * (1 - 1e-9) * worker.speed));
  }
  RC_ASSERT(possible < leaves);
}

TEST(Placement, RefusesWhatCannotBe) {
  const Proportional proportional;
  EXPECT_THROW(proportional.place(4, {}, 0), ConfigError);
  EXPECT_THROW(RoundRobin().place(4, {}, 0), ConfigError);
  EXPECT_THROW(proportional.place(4, workers_of_speed({0, 0}), 0), ConfigError);
  EXPECT_THROW(proportional.place(4, workers_of_speed({1, -1}), 0), ConfigError);
  EXPECT_THROW(
      proportional.place(4, workers_of_speed({std::numeric_limits<double>::quiet_NaN()}), 0),
      ConfigError);
}

}  // namespace
}  // namespace yoke::elastic
