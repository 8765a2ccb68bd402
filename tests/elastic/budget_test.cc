// Restart budgets by cause: what is tried again, how often, and after which pause.
#include "yoke/elastic/budget.h"

#include <gtest/gtest.h>

#include "yoke/base/exit_code.h"

namespace yoke::elastic {
namespace {

constexpr WorkerEnd kKilled{.exit_code = 137, .signal = 9};
constexpr WorkerEnd kThrew{.exit_code = kExitFailed};

TEST(Budget, InfrastructureIsTriedAgainWhileThereIsProgress) {
  Budget budget(3);
  for (int step = 0; step < 100; ++step) {
    EXPECT_TRUE(budget.failed(kKilled, step).restart);
    budget.made_progress();
  }
}

TEST(Budget, ThreeFailuresInARowWithoutAStepAreTheLast) {
  Budget budget(3);
  EXPECT_EQ(budget.failed(kKilled, 7).after, Clock::duration::zero()) << "the first costs no pause";
  EXPECT_EQ(budget.failed(kKilled, 7).after, std::chrono::milliseconds(100));
  EXPECT_EQ(budget.failed(kKilled, 7).after, std::chrono::milliseconds(200));
  const Ruling last = budget.failed(kKilled, 7);
  EXPECT_FALSE(last.restart);
  EXPECT_EQ(last.exit_code, kExitDoNotRestart);
}

TEST(Budget, ProgressThatIsHeardOfTooLateForgivesAllButTheLastFailure) {
  Budget budget(2);
  EXPECT_TRUE(budget.failed(kKilled, 7).restart);
  EXPECT_TRUE(budget.failed(kKilled, 9).restart);
  budget.had_made_progress();
  EXPECT_TRUE(budget.failed(kKilled, 9).restart);
  EXPECT_FALSE(budget.failed(kKilled, 9).restart);
}

TEST(Budget, AnExceptionTwiceAtOneStepIsTheUsers) {
  Budget budget(10);
  EXPECT_TRUE(budget.failed(kThrew, 5).restart);
  const Ruling second = budget.failed(kThrew, 5);
  EXPECT_FALSE(second.restart);
  EXPECT_EQ(second.exit_code, kExitDoNotRestart);
  EXPECT_NE(second.why.find("step 5"), std::string::npos) << second.why;
}

TEST(Budget, AnExceptionAtAnotherStepIsAnother) {
  Budget budget(10);
  for (int step = 0; step < 5; ++step) {
    EXPECT_TRUE(budget.failed(kThrew, step).restart);
    budget.made_progress();
  }
}

TEST(Budget, MemoryIsTriedOnceMore) {
  const WorkerEnd starved{.exit_code = 137, .signal = 9, .out_of_memory = true};
  Budget budget(10);
  EXPECT_TRUE(budget.failed(starved, 3).restart);
  budget.made_progress();
  const Ruling second = budget.failed(starved, 50);
  EXPECT_FALSE(second.restart);
  EXPECT_EQ(second.exit_code, 137);
}

TEST(Budget, BadDataAndConfigurationAreFinalWithTheirOwnCode) {
  for (const int code : {kExitUsage, kExitData, kExitConfig, kExitIo, kExitDoNotRestart}) {
    Budget budget(10);
    const Ruling ruling = budget.failed({.exit_code = code}, 3);
    EXPECT_FALSE(ruling.restart) << code;
    EXPECT_EQ(ruling.exit_code, code);
  }
}

TEST(Budget, WithoutRestartsTheFirstFailureEndsTheRunWithItsCode) {
  Budget budget(0);
  const Ruling ruling = budget.failed(kKilled, 3);
  EXPECT_FALSE(ruling.restart);
  EXPECT_EQ(ruling.exit_code, 137);
}

TEST(Budget, ContentEndsAreFree) {
  Budget budget(1);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(budget.failed({.exit_code = kExitSaved}, 3).restart);
  EXPECT_TRUE(budget.failed(kKilled, 3).restart);
}

}  // namespace
}  // namespace yoke::elastic
