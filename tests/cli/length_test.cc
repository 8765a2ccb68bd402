// The length of a run, where the schedule does not depend on it, may grow.

#include <gmock/gmock.h>

#include "tests/cli/train_folder.h"
#include "tests/support/scoped_variable.h"
#include "yoke/base/exit_code.h"

namespace yoke::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(Train, AFinishedRunGoesOnToMoreStepsAndToTheBitsOfALongOne) {
  // 12 and 20 steps lie inside the first epoch, where nothing is evaluated; 40 in the second.
  for (const char* steps : {"12", "20", "40"}) {
    ASSERT_EQ(train("grown", {"-n", "2", "--steps", steps}).exit_code, kExitOk);
    ASSERT_EQ(train(steps, {"--steps", steps}).exit_code, kExitOk);
    EXPECT_EQ(report("grown")["state_sha256"], report(steps)["state_sha256"]) << steps;
    EXPECT_EQ(report("grown")["metrics"]["test_loss"], report(steps)["metrics"]["test_loss"]);
  }
  EXPECT_EQ(lines_of(content_of(run("grown").metrics())).size(), 40u);
  auto again = train("grown", {"--steps", "40"});
  EXPECT_EQ(again.exit_code, kExitOk);
  EXPECT_THAT(again.err, HasSubstr("is finished"));
}

TEST_F(Train, EpochsMayGrowToo) {
  std::vector<std::string> flags = {"--set", "train.steps=0", "--set", "train.epochs=1"};
  ASSERT_EQ(train("a", flags).exit_code, kExitOk);
  auto steps = report("a")["steps"].get<int>();
  flags.back() = "train.epochs=2";
  ASSERT_EQ(train("a", flags).exit_code, kExitOk);
  EXPECT_EQ(report("a")["steps"], 2 * steps);
  flags.back() = "train.epochs=1";
  auto answer = train("a", flags);
  EXPECT_EQ(answer.exit_code, kExitConfig);
  EXPECT_THAT(answer.err, HasSubstr("train.epochs"));
}

TEST_F(Train, FewerStepsThanAreDoneAreRefusedAndHarmNothing) {
  ASSERT_EQ(train("a", {}).exit_code, kExitOk);
  auto before = report("a");
  auto answer = train("a", {"--steps", "5"});
  EXPECT_EQ(answer.exit_code, kExitConfig);
  EXPECT_THAT(answer.err, AllOf(HasSubstr("has gone 12 steps"), HasSubstr("the 5 that train.steps"),
                                HasSubstr("--fresh")));
  EXPECT_EQ(train("a", {}).exit_code, kExitOk);
  EXPECT_EQ(report("a"), before);
}

TEST_F(Train, AFinishedRunWithoutItsCheckpointsIsNotTrainedAnew) {
  ASSERT_EQ(train("a", {}).exit_code, kExitOk);
  auto before = report("a");
  std::filesystem::remove_all(run("a").checkpoints());
  auto answer = train("a", {});
  EXPECT_EQ(answer.exit_code, kExitIo);
  EXPECT_THAT(answer.err, AllOf(HasSubstr("no checkpoint"), HasSubstr("--fresh")));
  EXPECT_EQ(report("a"), before);
}

TEST_F(Train, AFaultThatCannotBeReadIsFoundBeforeAnOldRunIsSetAside) {
  ASSERT_EQ(train("a", {}).exit_code, kExitOk);
  ScopedVariable fault("YOKE_FAULT", "garbage");
  EXPECT_EQ(train("a", {"--fresh"}).exit_code, kExitConfig);
  EXPECT_FALSE(std::filesystem::exists(run("a").root().string() + ".old-1"));
}

TEST_F(Train, AScheduleThatLooksAtTheEndKeepsItsLength) {
  for (const std::string schedule : {"schedule.name=cosine", "schedule.name=linear"}) {
    auto name = schedule.substr(schedule.find('=') + 1);
    ASSERT_EQ(train(name, {"--set", schedule}).exit_code, kExitOk);
    auto answer = train(name, {"--set", schedule, "--steps", "20"});
    EXPECT_EQ(answer.exit_code, kExitConfig);
    EXPECT_THAT(answer.err, HasSubstr("another plan: train.steps"));
  }
}

TEST_F(Train, ARunThatDiedBetweenItsLastCheckpointAndItsReportIsReportedInFull) {
  ASSERT_EQ(train("a", {}).exit_code, kExitOk);
  auto before = report("a");
  std::filesystem::remove(run("a").report());
  ASSERT_EQ(train("a", {}).exit_code, kExitOk);
  EXPECT_EQ(report("a")["metrics"], before["metrics"]);
  EXPECT_EQ(report("a")["state_sha256"], before["state_sha256"]);
}

}  // namespace
}  // namespace yoke::test
