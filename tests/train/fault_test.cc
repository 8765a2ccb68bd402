// A worker is killed at each point of a step and of a save; the same run, started again, ends with
// the same bits.

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/support/scoped_variable.h"
#include "tests/support/spawn_ranks.h"
#include "tests/train/training.h"
#include "yoke/base/error.h"
#include "yoke/base/text.h"

namespace yoke::test {
namespace {

/// Of a run whose folder is made already, as the launcher does.
train::RunOptions options_in(const TemporaryFolder& folder) {
  train::RunOptions options;
  options.folder = RunFolder(folder.path() / "run");
  options.folder.create();
  return options;
}

class KilledAt : public testing::TestWithParam<const char*> {};

TEST_P(KilledAt, TheRunIsContinuedToTheSameBits) {
  train::RunConfig config = digits();
  config.train.steps = 12;
  config.train.checkpoint_every = 4;
  const std::string whole = state_after(config, {});

  TemporaryFolder folder;
  train::RunOptions options = options_in(folder);
  const std::string point = GetParam();
  const bool saving = point.starts_with("checkpoint");
  // Rank 0 saves; the states that are saved are those of steps 4, 8 and 12.
  const int victim = saving ? 0 : 1;
  const ScopedVariable fault("YOKE_FAULT",
                             cat("kill@rank=", victim, ",step=", saving ? 8 : 7, ",point=", point));
  auto sit = [&] {
    return run_processes(3, [&](World world) {
      return train::run(config, world, options, model::Registry::with_built_in()).state_sha256;
    });
  };
  const auto first = sit();
  EXPECT_EQ(first[static_cast<std::size_t>(victim)].signal, SIGKILL) << point;
  for (int rank = 0; rank < 3; ++rank) {
    if (rank == victim) continue;
    const Outcome& survivor = first[static_cast<std::size_t>(rank)];
    EXPECT_EQ(survivor.error, "PeerLost") << survivor;
    EXPECT_EQ(survivor.ranks, std::vector<int>{victim}) << survivor;
  }
  // A fault fires once a run folder, so the variable may stay as it is.
  const auto second = sit();
  for (const Outcome& outcome : second) EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(second[0].text, whole);
}

INSTANTIATE_TEST_SUITE_P(Points, KilledAt,
                         testing::Values("before_reduce", "in_reduce", "after_reduce", "in_update",
                                         "after_update", "checkpoint.1", "checkpoint.2",
                                         "checkpoint.3", "checkpoint.4", "checkpoint.5",
                                         "checkpoint.6", "checkpoint.7"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& letter : name) letter = std::isalnum(letter) ? letter : '_';
                           return name;
                         });

TEST(SaveThatTakesLong, IsWaitedForBeyondTheTimeOfACollective) {
  train::RunConfig config = digits();
  config.train.steps = 6;
  config.train.checkpoint_every = 3;
  config.comm.timeout = 0.5;
  const std::string whole = state_after(config, {});
  TemporaryFolder folder;
  train::RunOptions options = options_in(folder);
  const ScopedVariable fault("YOKE_FAULT", "stop@rank=0,step=3,point=checkpoint.3");
  RankProcesses ranks(
      2, with_world([&](World world) {
        return train::run(config, world, options, model::Registry::with_built_in()).state_sha256;
      }));
  ASSERT_TRUE(ranks.wait_until_stopped(0, Deadline::after(std::chrono::seconds(30))));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  ranks.send_signal(0, SIGCONT);
  const auto ended = ranks.wait();
  for (const Outcome& outcome : ended) EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(ended[0].text, whole);
}

TEST(RunFolderThatMoves, EndsTheRunAtItsNextSave) {
  train::RunConfig config = digits();
  config.train.steps = 6;
  TemporaryFolder folder;
  train::RunOptions options = options_in(folder);
  options.on_start = [&](const World&) {
    std::filesystem::rename(options.folder.root(), folder.path() / "elsewhere");
  };
  run_threads(1, [&](World world) {
    EXPECT_THROW(train::run(config, world, options, model::Registry::with_built_in()), IoError);
  });
  EXPECT_FALSE(std::filesystem::exists(options.folder.root())) << "it is not made again in part";
}

TEST(Faults, AFlippedBitChangesTheState) {
  train::RunConfig config = digits();
  config.train.steps = 3;
  config.schedule = {};
  const std::string right = state_after(config, {2});
  const ScopedVariable fault("YOKE_FAULT", "flip@rank=1,step=1,point=before_reduce");
  EXPECT_NE(state_after(config, {2}), right);
}

}  // namespace
}  // namespace yoke::test
