#include "yoke/base/run_folder.h"

#include <gtest/gtest.h>

#include "yoke/base/clock.h"
#include "yoke/base/error.h"
#include "yoke/base/files.h"

namespace yoke {
namespace {

// The names that other programs read (docs/run-folder.md).
TEST(RunFolder, HasTheFixedNames) {
  const RunFolder run("r");
  EXPECT_EQ(run.config(), "r/config.resolved.toml");
  EXPECT_EQ(run.report(), "r/report.json");
  EXPECT_EQ(run.failure(), "r/failure.json");
  EXPECT_EQ(run.metrics(), "r/metrics.jsonl");
  EXPECT_EQ(run.ledger(), "r/ledger.jsonl");
  EXPECT_EQ(run.events(), "r/events.jsonl");
  EXPECT_EQ(run.traffic(), "r/traffic.json");
  EXPECT_EQ(run.log_out(3), "r/logs/rank-0003.out");
  EXPECT_EQ(run.log_err(12345), "r/logs/rank-12345.err");
  EXPECT_EQ(run.rank_file(3), "r/ranks/0003.json");
  EXPECT_EQ(run.latest(), "r/checkpoints/LATEST");
  EXPECT_EQ(run.checkpoint(100), "r/checkpoints/step-00000100");
}

TEST(RunFolder, ABareNameLiesUnderRuns) {
  EXPECT_EQ(RunFolder::named("digits").root(), "runs/digits");
  EXPECT_EQ(RunFolder::named("./digits").root(), "./digits");
  EXPECT_EQ(RunFolder::named("/elsewhere/digits").root(), "/elsewhere/digits");
  EXPECT_EQ(RunFolder::named("a/digits/").root(), "a/digits") << "as a shell completes it";
  EXPECT_EQ(RunFolder::named("a/digits//./").root(), "a/digits");
  EXPECT_EQ(RunFolder::named("../digits/").root(), "../digits");
  for (const char* no_name : {"/", "//", "./", "../", "a/..", "/."})
    EXPECT_THROW(RunFolder::named(no_name), ConfigError) << no_name;
  EXPECT_THROW(RunFolder::named(""), ConfigError);
  EXPECT_THROW(RunFolder::named("."), ConfigError);
  EXPECT_THROW(RunFolder::named(".."), ConfigError);
}

TEST(RunFolder, IsCreatedWithItsFoldersAndMayExist) {
  const TemporaryFolder folder;
  const RunFolder run(folder.path() / "deep" / "run");
  run.create();
  run.create();
  EXPECT_TRUE(std::filesystem::is_directory(run.logs()));
  EXPECT_TRUE(std::filesystem::is_directory(run.checkpoints()));
  EXPECT_TRUE(std::filesystem::is_directory(run.rank_file(0).parent_path()));
  write_file_atomically(folder.path() / "file", "");
  EXPECT_THROW(RunFolder(folder.path() / "file").create(), IoError);
}

TEST(Clock, TheTimeIsIso8601InUtc) {
  const std::string now = utc_now();
  ASSERT_EQ(now.size(), 24u);
  const std::string shape = "0000-00-00T00:00:00.000Z";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == '0') {
      EXPECT_TRUE(now[i] >= '0' && now[i] <= '9') << now;
    } else {
      EXPECT_EQ(now[i], shape[i]) << now;
    }
  }
  EXPECT_LE(now, utc_now());
}

TEST(Clock, ADeadlinePasses) {
  EXPECT_TRUE(Deadline().passed());
  EXPECT_EQ(Deadline().left(), Clock::duration::zero());
  EXPECT_TRUE(Deadline::after(Clock::duration::zero()).passed());
  const Deadline later = Deadline::after(std::chrono::hours(1));
  EXPECT_FALSE(later.passed());
  EXPECT_GT(later.left(), std::chrono::minutes(59));
  EXPECT_EQ(later.span(), std::chrono::hours(1));
}

}  // namespace
}  // namespace yoke
