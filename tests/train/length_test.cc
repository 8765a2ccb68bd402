// Where a run ends does not show in its state.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/train/training.h"

namespace yoke::test {
namespace {

train::RunConfig growing() {
  train::RunConfig config = digits();
  config.schedule = {.name = "step", .warmup = 2, .step_size = 4, .gamma = 0.5};
  config.train.eval_every = 5;
  return config;
}

/// The hash of each state of a run, the first one after its first step.
std::vector<std::string> states_of(const std::filesystem::path& run) {
  std::vector<std::string> states;
  std::istringstream lines(read_file(RunFolder(run).metrics()));
  for (std::string line; std::getline(lines, line);) {
    states.push_back(nlohmann::json::parse(line).at("state_sha256"));
  }
  return states;
}

TEST(Length, TheStateAtTheEndIsThatOfALongerRunOnItsWay) {
  train::RunConfig config = growing();
  config.train.steps = 17;
  config.train.hash_every = 1;
  TemporaryFolder folder;
  train_in(folder.path() / "long", config, {});
  const auto states = states_of(folder.path() / "long");
  ASSERT_EQ(states.size(), 17U);
  // On, after and before an evaluation that the longer run has too.
  for (const std::int64_t steps : {4, 5, 8, 14, 15, 16}) {
    config.train.steps = steps;
    EXPECT_EQ(state_after(config, {.workers = 2}), states[static_cast<std::size_t>(steps) - 1])
        << steps;
  }
}

TEST(Length, ARunThatGrowsHasTheStatesOfALongOne) {
  train::RunConfig config = growing();
  TemporaryFolder folder;
  const auto grown = folder.path() / "grown";
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
