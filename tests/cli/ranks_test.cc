// Ranks that were told different things.

#include <gmock/gmock.h>

#include "tests/cli/train_folder.h"
#include "yoke/base/clock.h"
#include "yoke/base/exit_code.h"

namespace yoke::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ToldDifferently : public Train, public testing::WithParamInterface<const char*> {};

TEST_P(ToldDifferently, IsAnErrorThatNamesTheKey) {
  std::string flag = GetParam();
  auto answer = call({"launch", "-n", "2", "--", "sh", "-c",
                      "more=; [ $RANK = 1 ] && more='" + flag +
                          "'; exec " YOKE_PROGRAM " train digits.toml --run a $more"});
  EXPECT_EQ(answer.exit_code, kExitConfig) << answer.err;
  auto name = flag.starts_with("--set ") ? flag.substr(6, flag.find('=') - 6)
              : flag == "--steps 13"     ? "train.steps"
                                         : "--stop-after";
  EXPECT_THAT(answer.err,
              AllOf(HasSubstr("rank 1 is configured differently from rank 0"), HasSubstr(name)));
}

INSTANTIATE_TEST_SUITE_P(Flags, ToldDifferently,
                         testing::Values("--steps 13", "--stop-after 5", "--set optimizer.lr=0.5",
                                         "--set train.batch=40", "--set comm.transport=tcp",
                                         "--set comm.topology=tree", "--set comm.bucket_bytes=64",
                                         "--set train.threads=2", "--set train.eval_every=1",
                                         "--set model.hidden=25", "--set train.mixed=true"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& letter : name) letter = std::isalnum(letter) ? letter : '_';
                           return name;
                         });

TEST_F(Train, ARankOfAnotherRunDoesNotJoinAndLeavesNoTrace) {
  auto answer = call({"launch", "-n", "2", "--", "sh", "-c",
                      "exec " YOKE_PROGRAM " train digits.toml --run run-$RANK"});
  EXPECT_EQ(answer.exit_code, kExitConfig) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("--run is runs/run-1, and on rank 0 runs/run-0"));
  EXPECT_FALSE(std::filesystem::exists(run("run-1").root()));
}

TEST_F(Train, MoreWorkersThanSharedMemoryJoinsAreRefusedBeforehand) {
  auto answer = train("a", {"-n", "1000"});
  EXPECT_EQ(answer.exit_code, kExitConfig);
  EXPECT_THAT(answer.err, AllOf(HasSubstr("-n is 1000"), HasSubstr("comm.transport")));
  EXPECT_FALSE(std::filesystem::exists(run("a").root()));
}

TEST_F(Train, ARankThatWaitsForOthersEndsWhenItIsAskedTo) {
  auto started = Clock::now();
  auto answer = call({"launch", "-n", "2", "--", "sh", "-c",
                      "[ $RANK = 1 ] && exit 41; exec " YOKE_PROGRAM " train digits.toml"});
  EXPECT_EQ(answer.exit_code, 41);
  EXPECT_LT(Clock::now() - started, std::chrono::seconds(20));
}

TEST_F(Train, TheOthersAreGivenTheirGraceWhenOneRankFails) {
  for (const std::string grace : {"0.1", "20"}) {
    auto answer =
        call({"launch", "-n", "2", "--grace", grace, "--log-dir", "logs" + grace, "--", "sh", "-c",
              "trap 'sleep 7; echo saved; exit 0' TERM; [ $RANK = 1 ] && exit 41; while "
              ":; do sleep 0.05; done"});
    EXPECT_EQ(answer.exit_code, 41);
    EXPECT_EQ(content_of(folder_.path() / ("logs" + grace) / "rank-0000.out"),
              grace == "20" ? "saved\n" : "");
  }
}

}  // namespace
}  // namespace yoke::test
