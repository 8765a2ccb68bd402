// Where a run ends does not show in its state.

#include <gtest/gtest.h>

#include "tests/train/training.h"

namespace yoke::test {
namespace {

TEST(Length, TheStateAtTheEndIsThatOfALongerRunOnItsWay) {
  train::RunConfig config = digits();
  config.schedule = {.name = "step", .warmup = 2, .step_size = 4, .gamma = 0.5};
  config.train.eval_every = 5;
  TemporaryFolder folder;
  const auto grown = folder.path() / "grown";
  // On, after and before an evaluation that the longer run has too.
  for (const std::int64_t steps : {5, 8, 14, 15, 16}) {
    config.train.steps = steps;
    EXPECT_EQ(train_in(grown, config, {.workers = 2}).state_sha256, state_after(config, {}))
        << steps;
  }
}

TEST(Length, TheReportCountsTheLastEvaluation) {
  train::RunConfig config = digits();
  config.schedule = {};
  config.train.eval_every = 100;
  config.train.steps = 7;
  TemporaryFolder folder;
  const auto report = train_in(folder.path() / "run", config, {});
  EXPECT_EQ(report.metrics.at("best_test_loss"), report.metrics.at("test_loss"));
  EXPECT_EQ(report.metrics.at("best_step"), 7);
}

}  // namespace
}  // namespace yoke::test
