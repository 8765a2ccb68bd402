// A checkpoint that a lower generation began must not commit, nor touch LATEST.

#include <gmock/gmock.h>

#include "tests/checkpoint/sample.h"
#include "yoke/checkpoint/attempt.h"

namespace yoke::checkpoint {
namespace {

using testing::ElementsAre;

class Fence : public testing::Test {
 protected:
  Fence() { test::save(folder_, 1, 10, {.generation = 4}); }
  /// Saves step 2 as generation 4; `current` says the newest generation, each time it is asked.
  void save(const std::function<std::uint64_t()>& current) {
    test::save(folder_, 2, 20,
               {.generation = 4, .keep_last = 1, .may_commit = [&](std::uint64_t generation) {
                  return generation >= current();
                }});
  }
  const TemporaryFolder temporary_;
  const RunFolder folder_{temporary_.path()};
};

TEST_F(Fence, ALowerGenerationDoesNotCommitAndLeavesNothing) {
  const auto before = test::listing(folder_);
  EXPECT_THROW(save([] { return 5; }), Fenced);
  EXPECT_EQ(test::listing(folder_), before);
  EXPECT_EQ(read_file(folder_.latest()), "step-00000001\n");
  test::expect_is(Reader(folder_, 1), 1, 10);
}

TEST_F(Fence, TheOwnGenerationCommits) {
  save([] { return 4; });
  EXPECT_THAT(test::listing(folder_), ElementsAre("LATEST", "step-00000002"));
  EXPECT_EQ(Reader(folder_, 2).contents().generation, 4u);
}

TEST_F(Fence, OneThatIsReplacedAfterItsRenameMovesNoPointerAndRemovesNothing) {
  int asked = 0;
  EXPECT_THROW(save([&] { return ++asked == 1 ? 4 : 5; }), Fenced);
  EXPECT_THAT(test::listing(folder_), ElementsAre("LATEST", "step-00000001", "step-00000002"));
  EXPECT_EQ(read_file(folder_.latest()), "step-00000001\n");
  test::expect_is(Reader(folder_, 2), 2, 20);
}

TEST_F(Fence, TheNewGenerationsOwnAttemptIsLeftAlone) {
  const Attempt theirs(folder_, 2, 5);
  theirs.begin();
  const float value = 1;
  const auto shard =
      theirs.write_shard(0, std::vector<Slice>{{"parameters/w", DType::kFloat32, 0,
                                                std::as_bytes(std::span(&value, 1))}});
  EXPECT_THROW(save([] { return 5; }), Fenced);
  FaultPlan no_faults;
  theirs.commit({{"parameters/w", {DType::kFloat32, {1}}}}, std::vector{shard}, nullptr,
                {.generation = 5}, no_faults);
  EXPECT_EQ(Reader(folder_, 2).contents().generation, 5u);
}

}  // namespace
}  // namespace yoke::checkpoint
