// A machine that lacks memory, processes or descriptors: a message and exit code 71.

#include <gmock/gmock.h>

#include "tests/cli/train_folder.h"
#include "yoke/base/error.h"
#include "yoke/base/exit_code.h"

namespace yoke::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr int kNotLoaded = 127;  // the loader's own answer

Answer limited(const std::string& limit, const std::string& arguments,
               const std::filesystem::path& folder) {
  return run_program(
      {"/bin/sh", "-c", "ulimit " + limit + " && exec " YOKE_PROGRAM " " + arguments},
      {.folder = folder});
}

TEST_F(Train, NoLimitOfMemoryEndsInACrash) {
  ASSERT_EQ(train("a", {}).exit_code, kExitOk);
  bool lacked = false;
  for (int megabytes = 200; megabytes <= 1000; megabytes += 40) {
    auto answer = limited(cat("-v ", megabytes << 10), "hash a", folder_.path());
    EXPECT_THAT(answer.exit_code, AnyOf(kExitOk, kExitEnvironment, kNotLoaded))
        << megabytes << " MB: " << answer.err;
    if (answer.exit_code == kExitEnvironment) {
      lacked = true;
      EXPECT_THAT(answer.err, HasSubstr("not enough memory"));
    }
  }
  EXPECT_TRUE(lacked) << "no limit was between too little to load and enough";
}

TEST_F(Train, AModelBeyondTheMemoryIsFoundBeforeWorkersStart) {
  auto answer = limited("-v 3000000", "train digits.toml --run a -n 2 --set model.hidden=30000",
                        folder_.path());
  EXPECT_EQ(answer.exit_code, kExitEnvironment) << answer.err;
  EXPECT_THAT(answer.err, HasSubstr("not enough memory"));
  auto failure = read_json(run("a").failure());
  EXPECT_EQ(failure["kind"], "oom");
  EXPECT_TRUE(failure["rank"].is_null());
}

TEST_F(Train, AWorkerWithoutMemorySaysSoInTheReport) {
  // The model has 256 MB; with gradients and moments it is four times that.
  auto answer = limited("-v 1700000",
                        "train digits.toml --run a --set model.hidden=8000 --set "
                        "optimizer.name=adamw",
                        folder_.path());
  EXPECT_EQ(answer.exit_code, kExitEnvironment) << answer.err;
  auto failure = read_json(run("a").failure());
  EXPECT_EQ(failure["rank"], 0);
  EXPECT_EQ(failure["kind"], "oom");
  EXPECT_EQ(failure["exit_code"], kExitEnvironment);
  EXPECT_THAT(failure["last_lines"].dump(), HasSubstr("memory"));
}

TEST_F(Train, TooFewDescriptorsAreNamed) {
  auto answer = limited("-n 20", "launch -n 20 -- sleep 1000", folder_.path());
  EXPECT_EQ(answer.exit_code, kExitEnvironment);
  EXPECT_THAT(answer.err, HasSubstr("ulimit -n"));
}

}  // namespace
}  // namespace yoke::test
