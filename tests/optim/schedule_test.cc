#include "yoke/optim/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "yoke/base/error.h"

namespace yoke::optim {
namespace {

constexpr double kPeak = 0.4;

TEST(Schedule, ConstantIsThePeakAtEveryStep) {
  for (int step : {0, 1, 99}) EXPECT_EQ(learning_rate({}, kPeak, step, 100), kPeak);
}

TEST(Schedule, WarmUpGrowsByEqualPartsToThePeak) {
  for (const char* name : {"constant", "step", "cosine", "linear"}) {
    ScheduleOptions options{.name = name, .warmup = 8};
    for (int step = 0; step < 8; ++step) {
      EXPECT_DOUBLE_EQ(learning_rate(options, kPeak, step, 100), kPeak * (step + 1) / 8) << name;
    }
  }
}

TEST(Schedule, StepMultipliesEverySoManyStepsAfterTheWarmUp) {
  ScheduleOptions options{.name = "step", .warmup = 5, .step_size = 10, .gamma = 0.5};
  for (int step = 5; step < 60; ++step) {
    double expected = kPeak;
    for (int dropped = 15; dropped <= step; dropped += 10) expected *= 0.5;
    EXPECT_DOUBLE_EQ(learning_rate(options, kPeak, step, 60), expected) << step;
  }
}

TEST(Schedule, LinearFallsByEqualPartsToItsFinalPart) {
  ScheduleOptions options{.name = "linear", .warmup = 4, .final_ratio = 0.25};
  double fall = (kPeak - 0.25 * kPeak) / (20 - 4);
  for (int step = 4; step < 20; ++step) {
    EXPECT_NEAR(
        learning_rate(options, kPeak, step - 1, 20) - learning_rate(options, kPeak, step, 20), fall,
        1e-15);
  }
  EXPECT_DOUBLE_EQ(learning_rate(options, kPeak, 19, 20), 0.25 * kPeak);
}

TEST(Schedule, CosineIsHalfWayInTheMiddleAndFlatAtBothEnds) {
  ScheduleOptions options{.name = "cosine", .final_ratio = 0.1};
  EXPECT_DOUBLE_EQ(learning_rate(options, kPeak, 0, 101), kPeak);
  EXPECT_DOUBLE_EQ(learning_rate(options, kPeak, 50, 101), kPeak * 0.55);
  EXPECT_DOUBLE_EQ(learning_rate(options, kPeak, 100, 101), kPeak * 0.1);
  for (int step = 0; step <= 100; ++step) {
    double expected = kPeak * (0.1 + 0.9 * std::pow(std::cos(std::acos(-1.0) * step / 200), 2));
    EXPECT_NEAR(learning_rate(options, kPeak, step, 101), expected, 1e-15) << step;
  }
}

TEST(Schedule, EndsWhereItShouldInEveryCorner) {
  for (const char* name : {"cosine", "linear"}) {
    EXPECT_EQ(learning_rate({.name = name}, kPeak, 0, 1), kPeak) << "a run of one step";
    EXPECT_EQ(learning_rate({.name = name, .warmup = 6}, kPeak, 5, 6), kPeak)
        << "all of it warm-up";
    EXPECT_NEAR(learning_rate({.name = name, .warmup = 5}, kPeak, 5, 6), 0.0, 1e-16)
        << "one step after it";
    EXPECT_NEAR(learning_rate({.name = name}, kPeak, 70, 6), 0.0, 1e-16) << "beyond the end";
  }
}

TEST(Schedule, RefusesWhatCannotBeRight) {
  auto refused = [](const ScheduleOptions& options) {
    try {
      learning_rate(options, kPeak, 0, 10);
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_THAT(refused({.name = "cosin"}), testing::HasSubstr("Did you mean \"cosine\"?"));
  EXPECT_THAT(refused({.name = "constant", .warmup = 11}),
              testing::HasSubstr("schedule.warmup is 11 steps"));
  EXPECT_THAT(refused({.name = "constant", .warmup = -1}), testing::HasSubstr("schedule.warmup"));
  EXPECT_THAT(refused({.name = "step", .step_size = 0}), testing::HasSubstr("schedule.step_size"));
  EXPECT_THAT(refused({.name = "step", .gamma = -0.5}), testing::HasSubstr("schedule.gamma"));
  EXPECT_THAT(refused({.name = "linear", .final_ratio = std::nan("")}),
              testing::HasSubstr("schedule.final_ratio"));
}

}  // namespace
}  // namespace yoke::optim
