// Law 4, nothing is torn: whatever ends a save in the middle, the next load gives the old state or
// the new.

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "tests/checkpoint/sample.h"
#include "tests/support/captured_stderr.h"
#include "tests/support/kill_at_syscall.h"
#include "yoke/base/error.h"
#include "yoke/checkpoint/recovery.h"

namespace yoke::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::ElementsAre;
using testing::StartsWith;

/// Step and seed of the sample that a resume would find.
std::pair<std::int64_t, std::uint64_t> found_in(const RunFolder& folder) {
  const std::int64_t step = newest_intact(folder);
  if (step < 0) return {-1, 0};
  const Reader reader(folder, step);
  const auto seed = reader.run().at("seed").get<std::uint64_t>();
  test::expect_is(reader, step, seed);
  return {step, seed};
}

/// LATEST may name an older one than there is, and never one that is not there or not whole.
void expect_latest_is_whole(const RunFolder& folder) {
  if (!fs::exists(folder.latest())) return;
  const std::string name = read_file(folder.latest());
  ASSERT_TRUE(name.starts_with("step-")) << name;
  EXPECT_NO_THROW(Reader(folder, std::stoll(name.substr(5)))) << name;
}

/// Kills a save of (step, seed) at each of its system calls, on top of what `before` has written.
std::set<std::pair<std::int64_t, std::uint64_t>> kill_everywhere(
    const std::function<void(const RunFolder&)>& before, std::int64_t step, std::uint64_t seed) {
  std::set<std::pair<std::int64_t, std::uint64_t>> found;
  const TemporaryFolder original;
  before(RunFolder(original.path()));
  std::size_t kills = 0;
  for (bool killed = true; killed;) {
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path() / "run");
    fs::copy(original.path(), folder.root(), fs::copy_options::recursive);
    killed = test::kill_at_syscall(kills + 1, [&] { test::save(folder, step, seed, 1); });
    kills += killed ? 1 : 0;
    found.insert(found_in(folder));
    expect_latest_is_whole(folder);
    remove_leftovers(folder);
    for (const auto& name : test::listing(folder))
      EXPECT_THAT(name, AnyOf("LATEST", testing::MatchesRegex("step-[0-9]+")));
    if (kills % 10 == 0 || !killed) {  // The run goes on, and saves again.
      test::save(folder, step, seed, 1);
      EXPECT_EQ(found_in(folder), std::pair(step, seed));
      EXPECT_EQ(test::listing(folder).size(), 2u);
    }
  }
  EXPECT_GE(kills, 30u);
  return found;
}

using Found = std::set<std::pair<std::int64_t, std::uint64_t>>;

TEST(TornCheckpoint, AKilledSaveLeavesTheOldCheckpointOrTheNew) {
  EXPECT_EQ(kill_everywhere([](const RunFolder& folder) { test::save(folder, 1, 10); }, 2, 20),
            (Found{{1, 10}, {2, 20}}));
}

TEST(TornCheckpoint, AKilledFirstSaveLeavesNoneOrAll) {
  EXPECT_EQ(kill_everywhere([](const RunFolder& folder) { folder.create(); }, 2, 20),
            (Found{{-1, 0}, {2, 20}}));
}

TEST(TornCheckpoint, AKilledSaveOfTheSameStepLeavesOneOfThem) {
  EXPECT_EQ(kill_everywhere([](const RunFolder& folder) { test::save(folder, 2, 10); }, 2, 20),
            (Found{{2, 10}, {2, 20}}));
}

TEST(TornCheckpoint, AKilledSaveThatRemovesManyLeavesThoseThatAreToStay) {
  const TemporaryFolder original;
  for (int step = 1; step <= 6; ++step) {
    test::save(RunFolder(original.path()), step, 10 * step,
               {.keep_last = 9, .evaluation_loss = step == 2 ? 0.1 : 0.5});
  }
  std::size_t kills = 0;
  for (bool killed = true; killed;) {
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path() / "run");
    fs::copy(original.path(), folder.root(), fs::copy_options::recursive);
    killed = test::kill_at_syscall(kills + 1, [&] {
      test::save(folder, 7, 70, {.keep_last = 2, .keep_every = 4, .keep_best = 1});
    });
    kills += killed ? 1 : 0;
    remove_leftovers(folder);
    const auto steps = steps_present(folder);
    const std::int64_t newest = steps.back();
    EXPECT_TRUE(newest == 7 || newest == 6);
    EXPECT_THAT(steps, testing::IsSupersetOf({2, 4, 6}));
    // Whole ones only, and none goes before the new one is found.
    for (const auto step : steps) test::expect_is(Reader(folder, step), step, 10 * step);
    if (newest == 6) {
      EXPECT_EQ(steps.size(), 6u);
    }
    if (!killed) {
      EXPECT_THAT(steps, ElementsAre(2, 4, 6, 7));
    }
  }
  EXPECT_GE(kills, 60u);
}

TEST(TornCheckpoint, AKilledRecoveryLosesNothingAndTheNextOneEndsTheSame) {
  const test::CapturedStderr log;
  const TemporaryFolder original;
  {
    const RunFolder folder(original.path());
    for (int step = 1; step <= 3; ++step) test::save(folder, step, 10 * step, 3);
    for (int step : {2, 3}) fs::remove(folder.checkpoint(step) / "shard-0000.bin");
    fs::remove(folder.run_id());
  }
  std::size_t kills = 0;
  for (bool killed = true; killed;) {
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path() / "run");
    fs::copy(original.path(), folder.root(), fs::copy_options::recursive);
    killed = test::kill_at_syscall(kills + 1, [&] { recover_newest(folder); });
    kills += killed ? 1 : 0;
    EXPECT_EQ(recover_newest(folder).step, 1);
    remove_leftovers(folder);
    EXPECT_THAT(test::listing(folder), ElementsAre("LATEST", "damaged-step-00000002",
                                                   "damaged-step-00000003", "step-00000001"));
    EXPECT_EQ(read_file(folder.latest()), "step-00000001\n");
  }
  EXPECT_GE(kills, 30u);
}

/// How a process ended that did `work`: a signal, or 0 for none, 1 for IoError.
int ended(const std::function<void()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      work();
    } catch (const IoError&) {
      ::_exit(1);
    } catch (...) {
      ::_exit(2);
    }
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(TornCheckpoint, EachFaultPointKillsAndLeavesAFolderThatLoads) {
  for (int point = 1; point <= 7; ++point) {
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path() / "run");
    folder.create();
    test::save(folder, 1, 10);
    const std::string fault = cat("kill@rank=0,step=2,point=checkpoint.", point);
    const auto save = [&] {
      test::save(folder, 2, 20, 2, FaultPlan(fault, 0, folder.faults_fired()));
    };
    EXPECT_EQ(ended(save), SIGKILL) << fault;
    const bool is_new = point >= 5;  // checkpoint.4 lies before the rename, checkpoint.5 behind it.
    EXPECT_EQ(found_in(folder), (is_new ? std::pair<std::int64_t, std::uint64_t>{2, 20}
                                        : std::pair<std::int64_t, std::uint64_t>{1, 10}))
        << fault;
    EXPECT_EQ(ended(save), 0) << "it fires once";
    EXPECT_EQ(found_in(folder), (std::pair<std::int64_t, std::uint64_t>{2, 20}));
    EXPECT_THAT(test::listing(folder), ElementsAre("LATEST", "step-00000001", "step-00000002"));
  }
}

TEST(TornCheckpoint, AFullDiskIsAnErrorAndTheOldCheckpointStays) {
  rlim_t smaller = 0, larger = 0;  // Of the two files; the limit stops one or both.
  {
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path());
    test::save(folder, 2, 20);
    std::tie(smaller, larger) =
        std::minmax<rlim_t>({fs::file_size(folder.checkpoint(2) / "shard-0000.bin"),
                             fs::file_size(folder.checkpoint(2) / "MANIFEST.json")});
  }
  for (const rlim_t limit : {rlim_t{0}, smaller - 1, smaller, larger - 1}) {
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path());
    test::save(folder, 1, 10);
    const auto before = test::listing(folder);
    EXPECT_EQ(ended([&] {
                ::signal(SIGXFSZ, SIG_IGN);
                const rlimit size{limit, limit};
                ::setrlimit(RLIMIT_FSIZE, &size);
                test::save(folder, 2, 20);
              }),
              1)
        << limit;
    EXPECT_EQ(test::listing(folder), before) << limit;
    EXPECT_EQ(found_in(folder), (std::pair<std::int64_t, std::uint64_t>{1, 10}));
    EXPECT_EQ(read_file(folder.latest()), "step-00000001\n");
  }
}

}  // namespace
}  // namespace yoke::checkpoint
