// One worker at half the speed of three others, 128 leaves, simulated without a clock: how close
// each policy comes to the ideal, sum(v) leaves a second. An equal split is 1.75 times slower.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <queue>

#include "tests/elastic/placed.h"
#include "yoke/elastic/placement/contiguous.h"
#include "yoke/elastic/placement/dynamic_queue.h"
#include "yoke/elastic/placement/scattered.h"
#include "yoke/elastic/placement/speed_meter.h"

namespace yoke::elastic {
namespace {

constexpr std::int64_t kLeaves = 128;
constexpr double kIdeal = kLeaves / 3.5;

/// Seconds until the last worker is done, at `speeds` in leaves a second.
double seconds(const comm::BlockPlan& plan, const std::vector<double>& speeds) {
  const auto counts = test::counts(plan);
  double end = 0;
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    end = std::max(end, static_cast<double>(counts[i]) / speeds[i]);
  }
  return end;
}

/// Seconds until every leaf counts, when workers draw blocks as they get free. All begin at 0, in
/// the order of their numbers.
double seconds(DynamicQueue& queue, const std::vector<double>& speeds) {
  struct Event {
    double time;
    int worker;
    std::optional<LeafBlock> ended;
    bool operator>(const Event& other) const {
      return std::pair(time, worker) > std::pair(other.time, other.worker);
    }
  };
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  for (std::size_t i = 0; i < speeds.size(); ++i) events.push({0, static_cast<int>(i), {}});
  while (!events.empty()) {
    const Event event = events.top();
    events.pop();
    if (event.ended) queue.finish(event.worker, *event.ended);
    if (queue.done()) return event.time;
    if (const auto draw = queue.draw(event.worker)) {
      const double span = static_cast<double>(draw->block.count()) / speeds[event.worker];
      events.push({event.time + span, event.worker, draw->block});
    }
  }
  return -1;
}

/// The slow worker as each of the four.
std::vector<std::vector<double>> one_slow() {
  std::vector<std::vector<double>> all;
  for (int slow = 0; slow < 4; ++slow) {
    all.emplace_back(4, 1.0).at(static_cast<std::size_t>(slow)) = 0.5;
  }
  return all;
}

TEST(Throughput, AnEqualSplitWaitsForTheSlowOne) {
  for (const auto& speeds : one_slow()) {
    const auto plan = RoundRobin().place(kLeaves, test::workers_of_speed(speeds), 0);
    EXPECT_DOUBLE_EQ(seconds(plan, speeds), 1.75 * kIdeal);
  }
}

TEST(Throughput, ProportionalIsWithinFivePercentOfTheIdealAfterOneMeasuredStep) {
  for (const auto& speeds : one_slow()) {
    SpeedMeter meter;
    auto workers = test::workers_of_speed(meter.speeds(4));
    const Proportional policy;
    const auto first = policy.place(kLeaves, workers, 0);
    EXPECT_DOUBLE_EQ(seconds(first, speeds), 1.75 * kIdeal);  // nothing is known yet
    const auto counts = test::counts(first);
    for (int i = 0; i < 4; ++i) {
      meter.note(i, counts[i], static_cast<double>(counts[i]) / speeds[i]);
    }
    workers = test::workers_of_speed(meter.speeds(4));
    EXPECT_LE(seconds(policy.place(kLeaves, workers, 1), speeds), kIdeal / 0.95);
  }
}

TEST(Throughput, DynamicIsWithinFivePercentOfTheIdealWithoutKnowingAnything) {
  for (const auto& speeds : one_slow()) {
    for (const bool backup : {false, true}) {
      DynamicQueue queue(kLeaves, 4, {.backup = backup});
      EXPECT_LE(seconds(queue, speeds), kIdeal / 0.95) << backup;
    }
  }
}

TEST(Throughput, ABackupHelpsWhenAWorkerStandsStill) {
  const std::vector<double> speeds{1, 1, 1, 1e-6};
  DynamicQueue without(kLeaves, 4, {.backup = false});
  EXPECT_GE(seconds(without, speeds), 1e6);
  DynamicQueue with(kLeaves, 4, {.backup = true});
  // The three others do all of it, and at worst find out at the end that the first block, an eighth
  // of the leaves, is missing.
  EXPECT_LE(seconds(with, speeds), kLeaves / 3.0 + kLeaves / 8.0);
}

TEST(Throughput, WeightsThatAreRightAreAsGoodAsMeasuredSpeeds) {
  for (const auto& speeds : one_slow()) {
    std::vector<Worker> workers;
    for (const double speed : speeds) workers.push_back({.weight = 2 * speed});
    // Every leaf a piece: 128 turns of 7 are 18 rounds and 2 turns.
    const auto plan = WeightedRoundRobin(32).place(kLeaves, workers, 0);
    EXPECT_LE(seconds(plan, speeds), kIdeal / 0.95);
  }
}

}  // namespace
}  // namespace yoke::elastic
