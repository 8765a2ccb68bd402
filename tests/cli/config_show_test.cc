#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/call.h"
#include "yoke/base/exit_code.h"

namespace yoke::test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

/// A run file in a folder of its own, and `yoke config show` in that folder.
class ConfigShow : public testing::Test {
 protected:
  void write(const std::string& text) { write_file_atomically(folder_.path() / "run.toml", text); }
  Answer show(std::vector<std::string> flags, std::vector<std::string> environment = {}) {
    std::vector<std::string> arguments = {"config", "show", "run.toml"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return yoke(arguments, {.folder = folder_.path(), .environment = std::move(environment)});
  }
  TemporaryFolder folder_;
};

TEST_F(ConfigShow, FlagWinsOverVariableOverFileOverDefaultAndSaysSo) {
  write("[train]\nbatch = 32\nseed = 5\nepochs = 7\n[data]\npath = \"d.csv\"\n");
  std::vector<std::string> environment = {"YOKE_TRAIN_SEED=6", "YOKE_TRAIN_EPOCHS=8"};
  auto answer = show({"--origin", "--set", "train.epochs=9"}, environment);
  ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
  auto lines = lines_of(answer.out);
  EXPECT_THAT(lines, Contains(ContainsRegex("^train.batch = 32 .*run.toml:2")));
  EXPECT_THAT(lines, Contains(ContainsRegex("^train.seed = 6 .*YOKE_TRAIN_SEED")));
  EXPECT_THAT(lines, Contains(ContainsRegex("^train.epochs = 9 .*--set")));
  EXPECT_EQ(lines.size(), 4u) << "without --resolved there are only values that somebody gave";
}

TEST_F(ConfigShow, ResolvedHasEveryKeyAndReadsBack) {
  write("[train]\nbatch = 32\n[optimizer]\nlr = 0.125\n[data]\npath = \"d.csv\"\n");
  auto answer = show({"--resolved", "--set", "model.hidden=17"});
  ASSERT_EQ(answer.exit_code, kExitOk) << answer.err;
  EXPECT_THAT(answer.out, AllOf(HasSubstr("[comm]"), HasSubstr("hidden = 17")));
  EXPECT_THAT(show({"--resolved", "--origin"}).out, HasSubstr("default"));
  write(answer.out);
  EXPECT_EQ(show({"--resolved"}).out, answer.out);
}

TEST_F(ConfigShow, AnUnknownKeyIsAnErrorThatNamesThePlaceAndTheNearestKey) {
  write("[optimizer]\n  lrr = 0.1\n");
  auto answer = show({});
  EXPECT_EQ(answer.exit_code, kExitConfig);
  EXPECT_EQ(answer.out, "");
  EXPECT_THAT(answer.err, AllOf(HasSubstr("run.toml:2:3"), HasSubstr("did you mean"),
                                HasSubstr("optimizer.lr")));
}

TEST_F(ConfigShow, WrongValuesAreErrorsWhereverTheyComeFrom) {
  write("[train]\nbatch = \"many\"\n");
  EXPECT_EQ(show({}).exit_code, kExitConfig);
  write("[data]\npath = \"d.csv\"\n");
  ASSERT_EQ(show({}).exit_code, kExitOk);
  EXPECT_EQ(show({"--set", "train.batch=0"}).exit_code, kExitConfig);
  EXPECT_EQ(show({"--set", "train.batsh=1"}).exit_code, kExitConfig);
  auto answer = show({}, {"YOKE_TRAIN_BATHC=1"});
  EXPECT_EQ(answer.exit_code, kExitConfig);
  EXPECT_THAT(answer.err, HasSubstr("YOKE_TRAIN_BATHC"));
}

TEST_F(ConfigShow, AMissingFileIsNamed) {
  auto answer = yoke({"config", "show", "nothing.toml"}, {.folder = folder_.path()});
  EXPECT_NE(answer.exit_code, kExitOk);
  EXPECT_THAT(answer.err, HasSubstr("nothing.toml"));
}

}  // namespace
}  // namespace yoke::test
