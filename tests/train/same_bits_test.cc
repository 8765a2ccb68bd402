// Law 1: the parameters after k steps are byte-identical for every number of workers, transport,
// bucket size, and way to run ranks; also when a run is stopped and continued by another number of
// workers. The full matrix is scripts/same-bits.

#include <gtest/gtest.h>

#include <limits>

#include "tests/train/training.h"
#include "yoke/elastic/placement/make_policy.h"

namespace yoke::test {
namespace {

constexpr std::int64_t kAll = 1LL << 40;

/// Pairs of (workers, transport, bucket size, threads or processes) that cover every pair of
/// values.
const std::vector<Placement> kPairs = {
    {2, "shm", "auto", 4 << 20, Ranks::kProcesses}, {3, "tcp", "full_mesh", 1024, Ranks::kThreads},
    {4, "shm", "full_mesh", kAll, Ranks::kThreads}, {5, "tcp", "tree", 65536, Ranks::kProcesses},
    {8, "shm", "auto", 1024, Ranks::kThreads},      {2, "tcp", "auto", kAll, Ranks::kThreads},
    {3, "shm", "tree", 65536, Ranks::kProcesses},   {4, "tcp", "auto", 4 << 20, Ranks::kThreads},
};

void expect_same_bits(const train::RunConfig& config, const std::vector<Placement>& placements) {
  const std::string alone = state_after(config, {});
  for (const Placement& placement : placements)
    EXPECT_EQ(state_after(config, placement), alone) << placement;
}

TEST(SameBits, DigitsWithDropoutAndAShortLastBatch) {
  expect_same_bits(digits(), kPairs);
}

TEST(SameBits, ImagesWithBatchNormAndDropout) {
  expect_same_bits(mnist(), {kPairs[0], kPairs[1], kPairs[4], kPairs[6]});
}

TEST(SameBits, GptWithClippingAndEvaluation) {
  expect_same_bits(gpt(), {kPairs[1], kPairs[2], kPairs[3]});
}

TEST(SameBits, SeveralMicroBatchesOfALeaf) {
  train::RunConfig config = digits();
  config.train.leaf = 2;
  expect_same_bits(config, {kPairs[0], kPairs[1], kPairs[4]});
}

TEST(SameBits, EveryPlacement) {
  for (const std::string& policy : elastic::placement_names()) {
    train::RunConfig config = digits();
    config.elastic.weights = "3, 1, 0";
    const std::string alone = state_after(config, {});
    for (Placement placement : {kPairs[0], kPairs[1], kPairs[2], kPairs[4], Placement{}}) {
      placement.policy = policy;
      EXPECT_EQ(state_after(config, placement), alone) << placement;
    }
    config = mnist();
    config.train.leaf = 2;
    EXPECT_EQ(state_after(config, {.workers = 3, .policy = policy}), state_after(config, {}))
        << policy << ", leaves of two micro-batches";
  }
}

TEST(SameBits, ALeafLargerThanAStepIsTheStep) {
  train::RunConfig config = digits();
  config.train.leaf = 7;
  const std::string one_leaf = state_after(config, {});
  config.train.leaf = std::numeric_limits<std::int64_t>::max();
  for (const Placement& placement : {Placement{1}, kPairs[0], kPairs[1]})
    EXPECT_EQ(state_after(config, placement), one_leaf) << placement;
}

TEST(SameBits, AnotherPlanGivesOtherBits) {
  train::RunConfig other = digits();
  other.train.micro_batch = 10;
  EXPECT_NE(state_after(other, {}), state_after(digits(), {}));
  other = digits();
  other.train.seed = 4;
  EXPECT_NE(state_after(other, {}), state_after(digits(), {}));
}

TEST(SameBits, StoppedAndContinuedByOtherNumbersOfWorkers) {
  for (const train::RunConfig& config : {digits(), gpt()}) {
    const std::string whole = state_after(config, {});
    TemporaryFolder folder;
    const auto run = folder.path() / "run";
    EXPECT_EQ(train_in(run, config, {2, "shm"}, 1).status, "stopped");
    EXPECT_EQ(train_in(run, config, {3, "tcp"}, 16).steps, 17);
    EXPECT_EQ(train_in(run, config, {5, "shm"}, 12).steps, 29);
    EXPECT_EQ(train_in(run, config, {1, "shm"}).state_sha256, whole);
  }
}

}  // namespace
}  // namespace yoke::test
