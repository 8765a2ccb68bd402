// A stdout that takes no more: full, or a pipe whose reader has left.

#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdlib>

#include "tests/cli/train_folder.h"
#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"
#include "yoke/base/hash.h"

namespace yoke::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// `command` of a shell in which $YOKE is the program.
Answer shell(const std::string& command, const std::filesystem::path& folder,
             std::vector<std::string> environment = {}) {
  environment.push_back("YOKE=" YOKE_PROGRAM);
  return run_program({"/bin/bash", "-c", command}, {.folder = folder, .environment = environment});
}

TEST_F(Train, NoCommandEndsWellWhenStdoutIsFull) {
  ASSERT_EQ(train("a", {}).exit_code, kExitOk);
  for (const std::string command :
       {"--help", "--version", "train --help", "train digits.toml --dry-run",
        "train digits.toml --run a", "train digits.toml --run b --json", "hash a", "hash a --json",
        "eval a", "eval a --json", "replay a --step 0 --micro-batch 0", "config show digits.toml",
        "config show digits.toml --resolved", "launch -n 2 -- echo hello"}) {
    auto answer = shell("$YOKE " + command + " > /dev/full", folder_.path());
    EXPECT_EQ(answer.exit_code, kExitIo) << command;
    EXPECT_THAT(answer.err, HasSubstr("stdout")) << command;
  }
}

TEST_F(Train, AFullStdoutHidesNeitherAFailureNorASavedState) {
  auto failed = shell("$YOKE launch -- sh -c 'echo hello; exit 9' > /dev/full", folder_.path());
  EXPECT_EQ(failed.exit_code, 9);
  auto saved = shell("$YOKE train digits.toml --run a --stop-after 1 > /dev/full", folder_.path());
  EXPECT_EQ(saved.exit_code, kExitSaved);
}

TEST_F(Train, LaunchEndsWhenItsReaderHasAndLeavesNothing) {
  auto marker = "OUTPUT_TEST=" + random_token();
  auto temporary = folder_.path() / "tmp";
  std::filesystem::create_directory(temporary);
  auto answer = shell(
      "$YOKE launch -n 2 -- sh -c 'while :; do echo hello; done' | head -n 1; exit "
      "${PIPESTATUS[0]}",
      folder_.path(), {marker, "TMPDIR=" + temporary.string()});
  EXPECT_EQ(answer.exit_code, kExitBrokenPipe);
  EXPECT_THAT(answer.out, HasSubstr("hello\n"));
  EXPECT_EQ(answer.err.find("failed"), std::string::npos) << answer.err;
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  EXPECT_THAT(processes_with(marker), IsEmpty());
}

TEST_F(Train, RanksWithALogAreNotEndedByAReaderThatHasLeft) {
  auto answer = shell(
      "$YOKE launch --log-dir logs -- sh -c 'for i in `seq 20000`; do echo $i; done' | head -n 1; "
      "exit ${PIPESTATUS[0]}",
      folder_.path());
  EXPECT_EQ(lines_of(content_of(folder_.path() / "logs/rank-0000.out")).size(), 20000u);
}

TEST_F(Train, ATrainingGoesOnWhenNobodyReadsItsProgress) {
  auto answer = shell(
      "{ $YOKE train digits.toml --run a -n 2 --steps 400 2>&1 >report; echo $? > "
      "code; } | head -n 1",
      folder_.path());
  EXPECT_EQ(content_of(folder_.path() / "code"), "0\n");
  EXPECT_EQ(report("a")["status"], "finished");
}

TEST_F(Train, AProgramIsStartedWithThePipeSignalAsItShouldBe) {
  auto answer = shell("$YOKE launch -- sh -c 'kill -PIPE $$; echo survived'", folder_.path());
  EXPECT_EQ(answer.exit_code, 128 + SIGPIPE);
  EXPECT_THAT(answer.err, HasSubstr("SIGPIPE"));
}

TEST_F(Train, SigquitEndsAllAtOnceAndLeavesNothing) {
  auto marker = "OUTPUT_TEST=" + random_token();
  auto temporary = folder_.path() / "tmp";
  std::filesystem::create_directory(temporary);
  Call call({"launch", "-n", "2", "--log-dir", "logs", "--", "sh", "-c",
             "trap '' TERM INT; echo ready; sleep 1000 & wait"},
            here({marker, "TMPDIR=" + temporary.string()}));
  ASSERT_TRUE(eventually([&] {
    return content_of(folder_.path() / "logs/rank-0000.out") == "ready\n" &&
           content_of(folder_.path() / "logs/rank-0001.out") == "ready\n";
  }));
  call.send(SIGQUIT);
  EXPECT_EQ(call.wait().exit_code, 128 + SIGQUIT);
  EXPECT_TRUE(std::filesystem::is_empty(temporary));
  EXPECT_TRUE(eventually([&] { return processes_with(marker).empty(); }));
}

}  // namespace
}  // namespace yoke::test
