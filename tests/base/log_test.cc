#include "yoke/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <regex>
#include <sstream>
#include <thread>

#include "tests/support/captured_stderr.h"
#include "tests/support/scoped_variable.h"
#include "yoke/base/error.h"

namespace yoke {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

/// What the action writes to stderr.
template <typename Action>
std::string logged(const Action& action) {
  const test::CapturedStderr captured;
  action();
  return captured.text();
}

class Log : public testing::Test {
 protected:
  ~Log() override {
    set_log_level("info");
    set_log_prefix("");
  }
};

TEST_F(Log, ALineHasTimeLevelRankAndText) {
  set_log_prefix("rank 3");
  EXPECT_THAT(
      logged([] { log_warning("step ", 7, " was slow"); }),
      MatchesRegex(
          "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}\\.[0-9]{3}Z warning \\[rank 3\\] step 7 was "
          "slow\n"));
  set_log_prefix("");
  EXPECT_THAT(logged([] { log_error("{} is no placeholder"); }),
              MatchesRegex(".*Z error \\{\\} is no placeholder\n"));
}

TEST_F(Log, LevelsBelowTheChosenOneAreSilent) {
  const auto all = [] {
    log_debug("d");
    log_info("i");
    log_warning("w");
    log_error("e");
  };
  const auto lines = [&] {
    const std::string text = logged(all);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines(), 3) << "info is the default";
  set_log_level("debug");
  EXPECT_EQ(lines(), 4);
  set_log_level("warning");
  EXPECT_EQ(lines(), 2);
  set_log_level("error");
  EXPECT_EQ(lines(), 1);
  EXPECT_THROW(set_log_level("verbose"), ConfigError);
}

TEST_F(Log, AMessageCannotForgeALine) {
  EXPECT_THAT(logged([] { log_info("one\n2026-01-01T00:00:00.000Z error two"); }),
              HasSubstr("one\n    2026-01-01"));
}

TEST_F(Log, ColorsAreForThoseWhoWantThem) {
  const test::ScopedVariable none("NO_COLOR", std::nullopt);
  EXPECT_THAT(logged([] { log_error("x"); }), Not(HasSubstr("\033"))) << "a file is no terminal";
  const test::ScopedVariable force("CLICOLOR_FORCE", "1");
  EXPECT_THAT(logged([] { log_error("x"); }), HasSubstr("\033[31m"));
  const test::ScopedVariable no("NO_COLOR", "1");
  EXPECT_THAT(logged([] { log_error("x"); }), Not(HasSubstr("\033")));
}

TEST_F(Log, LinesOfThreadsStayWhole) {
  constexpr int kThreads = 4, kLines = 200;
  const std::string text = logged([] {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([t] {
        for (int i = 0; i < kLines; ++i) log_info("thread ", t, " ", std::string(200, 'x'), " end");
      });
    }
  });
  const std::regex whole(R"(\S+Z info thread [0-3] x{200} end)");
  std::istringstream stream(text);
  int lines = 0;
  for (std::string line; std::getline(stream, line); ++lines) {
    ASSERT_TRUE(std::regex_match(line, whole)) << line;
  }
  EXPECT_EQ(lines, kThreads * kLines);
}

// A worker is forked while threads of the launcher log: it must be able to log too, and not wait
// for a lock that no thread of it holds.
TEST_F(Log, AForkedChildCanLog) {
  const test::CapturedStderr captured;
  log_info("made before the first fork: a child could not wait for the making of a log");
  std::atomic<bool> done = false;
  std::jthread busy([&] {
    while (!done) log_info("busy");
  });
  for (int i = 0; i < 40; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);  // ends a child that waits for ever
      log_info("child ", i);
      ::_exit(0);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  done = true;
  busy.join();
  EXPECT_THAT(captured.text(), HasSubstr("info child 39\n"));
}

}  // namespace
}  // namespace yoke
