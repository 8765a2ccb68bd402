#include "yoke/base/fault.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/captured_stderr.h"
#include "tests/support/scoped_variable.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"

namespace yoke {
namespace {

using testing::HasSubstr;

class Faults : public testing::Test {
 protected:
  FaultPlan plan(std::string_view text, int rank) { return FaultPlan(text, rank, fired_); }

  std::string error_of(std::string_view text) {
    try {
      plan(text, 0);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }

  /// Runs steps 0 to 9 with one point each in a child; returns its wait status.
  int run_child(const std::string& text, int rank, std::string_view point) {
    const pid_t child = ::fork();
    if (child == 0) {
      FaultPlan faults = plan(text, rank);
      for (int step = 0; step < 10; ++step) {
        if (faults.reach(point, step)) ::_exit(40 + step);
      }
      ::_exit(0);
    }
    int status = -1;
    ::waitpid(child, &status, WUNTRACED);
    if (WIFSTOPPED(status)) {
      ::kill(child, SIGCONT);
      int end = -1;
      ::waitpid(child, &end, 0);
      EXPECT_EQ(end, 0) << "it goes on after SIGCONT";
    }
    return status;
  }

  std::string loud() const { return captured_.text(); }

  TemporaryFolder folder_;
  std::filesystem::path fired_ = folder_.path() / "faults.fired";
  test::CapturedStderr captured_;
};

TEST_F(Faults, KillKillsOnceAndTheSameCommandGoesOn) {
  const std::string text = "kill@rank=2,step=7,point=in_reduce";
  const int status = run_child(text, 2, "in_reduce");
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  EXPECT_EQ(read_file(fired_), text + "\n");
  EXPECT_THAT(loud(), HasSubstr("FAULT " + text + " fires now, on purpose"));
  EXPECT_EQ(run_child(text, 2, "in_reduce"), 0);
  EXPECT_EQ(read_file(fired_), text + "\n");
  EXPECT_THAT(loud(), HasSubstr("fired in an earlier sitting"));
}

TEST_F(Faults, StopStopsUntilItIsContinued) {
  const int status = run_child("stop@rank=0,step=3,point=checkpoint.4", 0, "checkpoint.4");
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(WSTOPSIG(status), SIGSTOP);
}

TEST_F(Faults, FlipIsLeftToTheCaller) {
  FaultPlan faults = plan("flip@rank=1,step=5,point=before_reduce", 1);
  EXPECT_FALSE(faults.empty());
  EXPECT_FALSE(faults.reach("before_reduce", 4));
  EXPECT_FALSE(faults.reach("after_reduce", 5));
  EXPECT_TRUE(faults.reach("before_reduce", 5));
  EXPECT_FALSE(faults.reach("before_reduce", 5)) << "once";
  EXPECT_TRUE(faults.empty());
}

TEST_F(Faults, OnlyTheRankOfAFaultHasIt) {
  const std::string text =
      " flip@rank=0,step=1,point=before_reduce ; kill@rank=1,step=1,point=before_reduce;;"
      "flip@ point = before_reduce , step=2 , rank=0; ";
  FaultPlan zero = plan(text, 0);
  EXPECT_TRUE(zero.reach("before_reduce", 1));
  EXPECT_TRUE(zero.reach("before_reduce", 2));
  EXPECT_TRUE(plan(text, 2).empty());
  EXPECT_TRUE(plan("", 0).empty());
  EXPECT_TRUE(plan(" ", 0).empty());
  EXPECT_FALSE(FaultPlan().reach("anything", 0));
  // Two faults in a file, one a line: rank 1's is still to come.
  EXPECT_FALSE(plan(text, 1).empty());
  EXPECT_TRUE(plan(text, 0).empty());
}

TEST_F(Faults, ComeFromTheEnvironment) {
  {
    const test::ScopedVariable unset("YOKE_FAULT", std::nullopt);
    EXPECT_TRUE(FaultPlan::from_environment(0, fired_).empty());
  }
  const test::ScopedVariable set("YOKE_FAULT", "flip@rank=0,step=0,point=before_reduce");
  EXPECT_FALSE(FaultPlan::from_environment(0, fired_).empty());
  EXPECT_TRUE(FaultPlan::from_environment(1, fired_).empty());
}

TEST_F(Faults, BadSyntaxIsAnErrorForEveryRank) {
  EXPECT_THAT(error_of("kill@rank=9,step=1,point=in_redcue"),
              HasSubstr("there is no point \"in_redcue\"; did you mean \"in_reduce\"? There are: "
                        "in_recovery, in_compute, before_reduce, "));
  EXPECT_THAT(error_of("bill@rank=0,step=1,point=in_reduce"),
              HasSubstr("no kind of fault \"bill\"; did you mean \"kill\"? There are: kill, stop, "
                        "hang, throw, flip"));
  EXPECT_THAT(error_of("kill@rank=0,step=1"), HasSubstr("it names no point"));
  EXPECT_THAT(error_of("kill@rank=0,point=in_reduce"), HasSubstr("it names no step"));
  EXPECT_THAT(error_of("kill@step=1,point=in_reduce"), HasSubstr("it names no rank"));
  EXPECT_THAT(error_of("kill"), HasSubstr("it has no @"));
  EXPECT_THAT(error_of("kill@rank"), HasSubstr("\"rank\" has no ="));
  EXPECT_THAT(error_of("kill@rank=x,step=1,point=in_reduce"), HasSubstr("rank must be a number"));
  EXPECT_THAT(error_of("kill@rank=-1,step=1,point=in_reduce"), HasSubstr("rank must be a number"));
  EXPECT_THAT(error_of("kill@rank=1,step=1x,point=in_reduce"), HasSubstr("step must be a number"));
  EXPECT_THAT(error_of("kill@rank=1,rank=2,step=1,point=in_reduce"), HasSubstr("given twice"));
  EXPECT_THAT(error_of("kill@rank=1,step=1,point=in_reduce,when=now"),
              HasSubstr("\"when\" is unknown"));
  EXPECT_THAT(error_of("kill@rank=1,step=1,point=checkpoint.8"),
              HasSubstr("did you mean \"checkpoint.1\""));
  EXPECT_THAT(error_of("flip@rank=1,step=1,point=in_update"),
              HasSubstr("a bit can be flipped at before_reduce only"));
}

TEST_F(Faults, APointThatTheProgramInventsIsABug) {
  FaultPlan faults = plan("kill@rank=0,step=0,point=in_reduce", 0);
  EXPECT_THROW(faults.reach("in_redcue", 0), InternalError);
}

// Without its mark a fault would fire again after each restart, so it does not fire.
TEST_F(Faults, AFaultThatCannotBeMarkedDoesNotFire) {
  const std::string text = "kill@rank=0,step=1,point=in_reduce";
  fired_ = folder_.path() / "missing" / "faults.fired";
  FaultPlan faults = plan(text, 0);
  EXPECT_FALSE(faults.reach("in_reduce", 0));
  EXPECT_THROW(faults.reach("in_reduce", 1), IoError);
}

}  // namespace
}  // namespace yoke
