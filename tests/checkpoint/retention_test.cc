// Which checkpoints stay: the newest, every N-th for ever, the best by evaluation loss; and damaged
// ones take nobody's place.

#include "yoke/checkpoint/retention.h"

#include <gmock/gmock.h>

#include <cmath>

#include "tests/checkpoint/sample.h"
#include "tests/support/captured_stderr.h"

namespace yoke::checkpoint {
namespace {

using testing::ElementsAre;
using Reasons = std::map<std::int64_t, std::vector<std::string>>;

TEST(Retention, KeepsForAnyOfThreeReasons) {
  const std::vector<Kept> checkpoints{{10, 0.5}, {20, 0.2}, {30, {}}, {40, 0.2},
                                      {50, 0.9}, {60, 0.1}, {70, {}}};
  EXPECT_EQ(reasons_to_keep(checkpoints, {.keep_last = 2}),
            (Reasons{{60, {"last"}}, {70, {"last"}}}));
  EXPECT_EQ(reasons_to_keep(checkpoints, {.keep_last = 1, .keep_every = 20}),
            (Reasons{{20, {"every"}}, {40, {"every"}}, {60, {"every"}}, {70, {"last"}}}));
  EXPECT_EQ(reasons_to_keep(checkpoints, {.keep_last = 1, .keep_best = 2}),
            (Reasons{{20, {"best"}}, {60, {"best"}}, {70, {"last"}}}))
      << "of equal losses the earlier is the better";
  EXPECT_EQ(reasons_to_keep(checkpoints, {.keep_last = 2, .keep_every = 60, .keep_best = 9}),
            (Reasons{{10, {"best"}},
                     {20, {"best"}},
                     {40, {"best"}},
                     {50, {"best"}},
                     {60, {"last", "every", "best"}},
                     {70, {"last"}}}));
}

TEST(Retention, KeepsOneAtLeastAndNeverCountsTheDamaged) {
  const std::vector<Kept> checkpoints{{0, {}}, {10, {}}, {20, {}, false}, {30, {}}};
  EXPECT_EQ(reasons_to_keep(checkpoints, {.keep_last = 0}),
            (Reasons{{20, {"damaged"}}, {30, {"last"}}}));
  EXPECT_EQ(reasons_to_keep(checkpoints, {.keep_last = 2}),
            (Reasons{{10, {"last"}}, {20, {"damaged"}}, {30, {"last"}}}));
  EXPECT_EQ(reasons_to_keep(checkpoints, {.keep_last = 1, .keep_every = 5}),
            (Reasons{{10, {"every"}}, {20, {"damaged"}}, {30, {"last", "every"}}}))
      << "step 0 is a multiple of everything, and nothing that one would keep for ever";
}

class KeptOnDisk : public testing::Test {
 protected:
  const TemporaryFolder temporary_;
  const RunFolder folder_{temporary_.path()};
};

TEST_F(KeptOnDisk, EveryNthAndTheBestStayForEver) {
  const std::map<std::int64_t, double> losses{{2, 0.3}, {3, 0.1}, {5, 0.2}, {7, NAN}, {8, 0.4}};
  for (int step = 1; step <= 9; ++step) {
    WriteOptions options{.keep_last = 1, .keep_every = 4, .keep_best = 2};
    if (losses.contains(step)) options.evaluation_loss = losses.at(step);
    test::save(folder_, step, step, options);
  }
  EXPECT_THAT(steps_present(folder_), ElementsAre(3, 4, 5, 8, 9));
  EXPECT_EQ(Reader(folder_, 3).contents().evaluation_loss, 0.1);
  EXPECT_EQ(Reader(folder_, 4).contents().evaluation_loss, std::nullopt);
  for (const auto step : steps_present(folder_))
    test::expect_is(Reader(folder_, step), step, static_cast<std::uint64_t>(step));
}

TEST_F(KeptOnDisk, TwoVerifiedOnesAreThereBeforeAnyGoes) {
  const test::CapturedStderr log;
  for (int step = 1; step <= 3; ++step) test::save(folder_, step, step, 9);
  std::string content = read_file(folder_.checkpoint(3) / "shard-0000.bin");
  content[5] ^= 1;  // Same size: only reading all of it can tell.
  test::put(folder_.checkpoint(3) / "shard-0000.bin", content);
  test::save(folder_, 4, 4, 2);
  EXPECT_THAT(steps_present(folder_), ElementsAre(2, 3, 4)) << "3 is damaged, and no second source";
  EXPECT_THAT(log.text(), testing::HasSubstr("It is kept, and counts for none"));
  test::expect_is(Reader(folder_, 2), 2, 2);
}

TEST_F(KeptOnDisk, NewerOnesThanTheOneThatWasWrittenAreLeftAlone) {
  for (int step = 1; step <= 4; ++step) test::save(folder_, step, step, 9);
  test::save(folder_, 2, 5, 1);
  EXPECT_THAT(steps_present(folder_), ElementsAre(2, 3, 4));
}

}  // namespace
}  // namespace yoke::checkpoint
