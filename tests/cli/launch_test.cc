#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <map>
#include <set>

#include "tests/cli/call.h"
#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/hash.h"

namespace yoke::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

using Variables = std::map<std::string, std::string>;

Variables variables_of(const std::string& text) {
  Variables variables;
  for (const auto& line : lines_of(text)) {
    auto equals = line.find('=');
    if (equals != std::string::npos) variables[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return variables;
}

/// Starts `command` on three ranks and returns what each printed to stdout.
std::vector<Variables> environments_of(const std::vector<std::string>& command) {
  TemporaryFolder folder;
  std::vector<std::string> arguments = {"launch", "-n", "3", "--log-dir", folder.path(), "--"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  auto answer = yoke(arguments);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  std::vector<Variables> all;
  for (int rank = 0; rank < 3; ++rank) {
    all.push_back(variables_of(content_of(folder.path() / cat("rank-000", rank, ".out"))));
  }
  return all;
}

void expect_what_torchrun_sets(std::vector<Variables> ranks) {
  for (int rank = 0; rank < 3; ++rank) {
    auto& variables = ranks[static_cast<std::size_t>(rank)];
    auto number = std::to_string(rank);
    for (const char* name : {"RANK", "LOCAL_RANK", "ROLE_RANK"}) {
      EXPECT_EQ(variables[name], number) << name;
    }
    for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE", "ROLE_WORLD_SIZE"}) {
      EXPECT_EQ(variables[name], "3") << name;
    }
    for (const char* name :
         {"GROUP_RANK", "NODE_RANK", "TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"}) {
      EXPECT_EQ(variables[name], "0") << name;
    }
    for (const char* name : {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"}) {
      EXPECT_EQ(variables[name], "1") << name;
    }
    EXPECT_EQ(variables["MASTER_ADDR"], "127.0.0.1");
    EXPECT_GT(std::stoi(variables["MASTER_PORT"]), 0);
    for (const char* name : {"MASTER_PORT", "TORCHELASTIC_RUN_ID", "YOKE_TOKEN"}) {
      EXPECT_FALSE(variables[name].empty()) << name;
      EXPECT_EQ(variables[name], ranks[0][name]) << name << " is the same everywhere";
    }
    EXPECT_TRUE(variables.contains("TORCHELASTIC_ERROR_FILE"));
  }
}

TEST(Launch, SetsWhatTorchrunSetsForAProgram) {
  expect_what_torchrun_sets(environments_of({"env"}));
}

TEST(Launch, SetsWhatTorchrunSetsForPython) {
  expect_what_torchrun_sets(environments_of(
      {"python3", "-c", "import os\nfor item in os.environ.items(): print('='.join(item))"}));
}

TEST(Launch, TwoJobsShareNeitherTokenNorName) {
  auto first = environments_of({"env"});
  auto second = environments_of({"env"});
  for (const char* name : {"YOKE_TOKEN", "TORCHELASTIC_RUN_ID"}) {
    EXPECT_NE(first[0][name], second[0][name]) << name;
  }
}

TEST(Launch, ThreadsAreAsAsked) {
  auto answer = yoke({"launch", "--threads", "3", "--", "sh", "-c", "echo $OMP_NUM_THREADS"});
  EXPECT_EQ(answer.out, "[0] 3\n");
}

TEST(Launch, LabelsLinesAndKeepsTheStreamsApart) {
  auto answer = yoke({"launch", "-n", "2", "--", "sh", "-c", "echo out $RANK; echo err $RANK >&2"});
  EXPECT_EQ(answer.exit_code, 0);
  auto lines = lines_of(answer.out);
  EXPECT_EQ(std::multiset<std::string>(lines.begin(), lines.end()),
            (std::multiset<std::string>{"[0] out 0", "[1] out 1"}));
  EXPECT_THAT(answer.err, HasSubstr("[1] err 1\n"));
}

TEST(Launch, ShowsTheRanksAskedForAndLogsAll) {
  TemporaryFolder folder;
  auto answer = yoke({"launch", "-n", "3", "--log-dir", folder.path(), "--log-ranks", "0,2", "--",
                      "sh", "-c", "echo out $RANK"});
  auto lines = lines_of(answer.out);
  EXPECT_EQ(std::multiset<std::string>(lines.begin(), lines.end()),
            (std::multiset<std::string>{"[0] out 0", "[2] out 2"}));
  EXPECT_EQ(content_of(folder.path() / "rank-0001.out"), "out 1\n");
}

TEST(Launch, PassesFlagsOfTheProgramOnUntouched) {
  auto answer = yoke({"launch", "--", "printf", "%s|", "-n", "--help", "--", "a b"});
  EXPECT_EQ(answer.exit_code, 0);
  EXPECT_EQ(answer.out, "[0] -n|--help|--|a b|\n");
}

TEST(Launch, PassesTheExitCodeOfTheFirstFailedRankOnAndEndsTheOthers) {
  auto marker = "LAUNCH_TEST=" + random_token();
  auto answer = yoke({"launch", "-n", "3", "--", "sh", "-c",
                      "[ $RANK = 1 ] && { echo it is broken >&2; exit 41; }; sleep 1000"},
                     {.environment = {marker}});
  EXPECT_EQ(answer.exit_code, 41);
  EXPECT_THAT(answer.err, HasSubstr("rank 1 failed first"));
  EXPECT_THAT(answer.err, HasSubstr("exit code 41"));
  EXPECT_THAT(answer.err, HasSubstr("| it is broken"));
  EXPECT_TRUE(eventually([&] { return processes_with(marker).empty(); }));
}

TEST(Launch, NamesTheSignalThatKilledARank) {
  auto answer =
      yoke({"launch", "-n", "2", "--", "sh", "-c", "[ $RANK = 1 ] && kill -SEGV $$; sleep 1000"});
  EXPECT_EQ(answer.exit_code, 128 + SIGSEGV);
  EXPECT_THAT(answer.err, HasSubstr("rank 1 failed first"));
  EXPECT_THAT(answer.err, HasSubstr("killed by SIGSEGV (segmentation fault)"));
}

TEST(Launch, AKilledRankIsNotCalledOutOfMemoryWithoutReason) {
  auto answer = yoke({"launch", "--", "sh", "-c", "kill -KILL $$"});
  EXPECT_EQ(answer.exit_code, 128 + SIGKILL);
  EXPECT_THAT(answer.err, HasSubstr("killed by SIGKILL."));
  EXPECT_THAT(answer.err, Not(HasSubstr("memory")));
}

TEST(Launch, NamesTheCauseAndNotTheRanksThatLostAPeer) {
  auto answer = yoke({"launch", "-n", "4", "--", "sh", "-c", "[ $RANK = 2 ] && exit 7; exit 76"});
  EXPECT_EQ(answer.exit_code, 7);
  EXPECT_THAT(answer.err, HasSubstr("rank 2 failed first"));
}

TEST(Launch, ShowsWhatARankWroteForTorchrun) {
  auto answer = yoke({"launch", "--", "sh", "-c",
                      "echo '{\"message\": {\"message\": \"ValueError: bad shape\"}}' > "
                      "$TORCHELASTIC_ERROR_FILE; exit 1"});
  EXPECT_EQ(answer.exit_code, 1);
  EXPECT_THAT(answer.err, HasSubstr("ValueError: bad shape"));
}

TEST(Launch, TellsTorchrunItsOwnFailure) {
  TemporaryFolder folder;
  auto file = folder.path() / "error.json";
  yoke({"launch", "-n", "2", "--", "sh", "-c", "exit $((RANK * 9))"},
       {.environment = {"TORCHELASTIC_ERROR_FILE=" + file.string()}});
  EXPECT_THAT(content_of(file), HasSubstr("{\"message\":{\"extraInfo\":{\"py_callstack\":\"\""));
  EXPECT_THAT(content_of(file), HasSubstr("rank 1: ended with exit code 9"));
}

TEST(Launch, PassesSigtermOnSoThatProgramsCanSave) {
  auto marker = "LAUNCH_TEST=" + random_token();
  TemporaryFolder folder;
  Call call({"launch", "-n", "2", "--log-dir", folder.path(), "--", "sh", "-c",
             "trap 'exit 75' TERM; echo ready; while :; do sleep 0.02; done"},
            {.environment = {marker}});
  ASSERT_TRUE(eventually([&] {
    return content_of(folder.path() / "rank-0000.out") == "ready\n" &&
           content_of(folder.path() / "rank-0001.out") == "ready\n";
  }));
  call.send(SIGTERM);
  EXPECT_EQ(call.wait().exit_code, kExitSaved);
  EXPECT_THAT(processes_with(marker), IsEmpty());
}

TEST(Launch, LeavesNobodyBehindWhenItIsKilled) {
  auto marker = "LAUNCH_TEST=" + random_token();
  TemporaryFolder folder;
  Call call({"launch", "-n", "2", "--log-dir", folder.path(), "--", "sh", "-c",
             "echo ready; exec sleep 1000"},
            {.environment = {marker, "TMPDIR=" + folder.path().string()}});
  ASSERT_TRUE(eventually([&] {
    return content_of(folder.path() / "rank-0000.out") == "ready\n" &&
           content_of(folder.path() / "rank-0001.out") == "ready\n";
  }));
  call.send(SIGKILL);
  call.wait();
  EXPECT_TRUE(eventually([&] { return processes_with(marker).empty(); }));
}

TEST(Launch, RanksMeetInAWorld) {
  auto answer = yoke({"launch", "-n", "3", "--", WORLD_PROGRAM});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  auto lines = lines_of(answer.out);
  EXPECT_EQ(std::multiset<std::string>(lines.begin(), lines.end()),
            (std::multiset<std::string>{"[0] rank 0 of 3: sum 6", "[1] rank 1 of 3: sum 6",
                                        "[2] rank 2 of 3: sum 6"}));
}

}  // namespace
}  // namespace yoke::test
