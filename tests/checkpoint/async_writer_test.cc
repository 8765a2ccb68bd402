// Saving while training goes on: the state of the call is what is written, one save is in flight at
// most, a failure is an outcome and not an end, and nothing is torn.

#include "yoke/checkpoint/async_writer.h"

#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <set>

#include "tests/checkpoint/sample.h"
#include "tests/support/captured_stderr.h"
#include "tests/support/kill_at_syscall.h"
#include "yoke/checkpoint/recovery.h"

namespace yoke::checkpoint {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Kind = SaveOutcome::Kind;

class AsyncSave : public testing::Test {
 protected:
  static void save(AsyncWriter& writer, std::int64_t step, std::uint64_t seed,
                   WriteOptions options = {}) {
    const test::SampleState state(step, seed);  // gone when save() returns
    writer.save(state.snapshot, state.extra(), std::move(options));
  }
  /// Keeps a save in flight, just before it commits, until it is opened.
  struct Gate {
    std::promise<void> opened;
    std::shared_future<void> open{opened.get_future()};
    WriteOptions options(bool may = true) const {
      return {.may_commit = [open = open, may](std::uint64_t) {
        open.wait();
        return may;
      }};
    }
  };
  static std::vector<Kind> kinds(AsyncWriter& writer) {
    std::vector<Kind> kinds;
    for (const auto& outcome : writer.outcomes()) kinds.push_back(outcome.kind);
    return kinds;
  }
  const TemporaryFolder temporary_;
  const RunFolder folder_{temporary_.path()};
};

TEST_F(AsyncSave, WritesTheStateOfTheCallWhateverBecomesOfItLater) {
  AsyncWriter writer(folder_);
  Gate gate;
  save(writer, 1, 10, gate.options());
  EXPECT_TRUE(writer.in_flight());
  EXPECT_THAT(steps_present(folder_), ElementsAre()) << "it has not committed yet";
  gate.opened.set_value();
  writer.finish();
  test::expect_is(Reader(folder_, 1), 1, 10);
  EXPECT_THAT(kinds(writer), ElementsAre(Kind::kCommitted));
  EXPECT_THAT(writer.outcomes(), ElementsAre());
}

TEST_F(AsyncSave, OneIsInFlightAndTheNextWaitsForIt) {
  AsyncWriter writer(folder_);
  Gate gate;
  save(writer, 1, 10, gate.options());
  const test::SampleState state(2, 20);
  EXPECT_FALSE(writer.try_save(state.snapshot, state.extra(), {}));
  EXPECT_EQ(writer.counters().waits, 1);
  const std::size_t bytes = writer.copy_bytes();
  std::size_t want = 0;
  for (const auto& [name, tensor] : state.snapshot.all()) want += tensor.bytes.size();
  EXPECT_EQ(bytes, want) << "one copy of the state and no more";
  auto opener = std::async(std::launch::async, [&] { gate.opened.set_value(); });
  save(writer, 2, 20);
  EXPECT_EQ(writer.copy_bytes(), bytes);
  writer.finish();
  EXPECT_TRUE(writer.try_save(test::SampleState(3, 30).snapshot, nullptr, {}));
  writer.finish();
  EXPECT_EQ(writer.counters().saves, 3);
  EXPECT_GE(writer.counters().waits, 1);
  EXPECT_GE(writer.counters().copied.count(), 0);
  EXPECT_THAT(steps_present(folder_), ElementsAre(2, 3));
  test::expect_is(Reader(folder_, 2), 2, 20);
}

TEST_F(AsyncSave, TheDestructorWaitsForWhatIsInFlight) {
  Gate gate;
  std::future<void> opener;
  {
    AsyncWriter writer(folder_);
    save(writer, 1, 10, gate.options());
    opener = std::async(std::launch::async, [&] { gate.opened.set_value(); });
  }
  test::expect_is(Reader(folder_, 1), 1, 10);
}

TEST_F(AsyncSave, AReplacedGenerationIsFencedAndTheNextOneSaves) {
  const test::CapturedStderr log;
  AsyncWriter writer(folder_);
  Gate gate;
  gate.opened.set_value();
  save(writer, 1, 10, gate.options(false));
  save(writer, 2, 20, {.generation = 1});
  writer.finish();
  EXPECT_THAT(kinds(writer), ElementsAre(Kind::kFenced, Kind::kCommitted));
  EXPECT_THAT(steps_present(folder_), ElementsAre(2));
}

TEST_F(AsyncSave, AFullDiskIsSaidOnceAndTheNextSaveTriesAnew) {
  test::save(folder_, 1, 10);
  const auto before = test::listing(folder_);
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    const rlimit full{100, limit.rlim_max};
    bool ok = true;
    {
      const test::CapturedStderr log;
      AsyncWriter writer(folder_);
      ::setrlimit(RLIMIT_FSIZE, &full);
      save(writer, 2, 20);
      writer.finish();
      ::setrlimit(RLIMIT_FSIZE, &limit);
      const auto outcomes = writer.outcomes();
      ok = outcomes.size() == 1 && outcomes[0].kind == Kind::kAbandoned &&
           outcomes[0].message.find("Free some space") != std::string::npos &&
           test::listing(folder_) == before;
      save(writer, 3, 30);
      writer.finish();
      ok = ok && kinds(writer) == std::vector{Kind::kCommitted};
    }
    ::_exit(ok ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  test::expect_is(Reader(folder_, 1), 1, 10);
  test::expect_is(Reader(folder_, 3), 3, 30);
}

TEST_F(AsyncSave, ItsFaultPointsKillInTheThread) {
  folder_.create();
  for (int point = 1; point <= 7; ++point) {
    test::save(folder_, 1, 10);
    const pid_t child = ::fork();
    if (child == 0) {
      AsyncWriter writer(folder_, FaultPlan(cat("kill@rank=0,step=2,point=checkpoint.", point), 0,
                                            folder_.faults_fired()));
      save(writer, 2, 20);
      writer.finish();
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << point;
    EXPECT_EQ(newest_intact(folder_), point >= 5 ? 2 : 1) << point;
    std::filesystem::remove_all(folder_.checkpoint(2));
    remove_leftovers(folder_);
  }
}

#ifndef YOKE_SANITIZED  // The sanitizers' threads do not start in a traced child.
TEST_F(AsyncSave, KilledAtAnySystemCallLeavesTheOldCheckpointOrTheNew) {
  test::save(folder_, 1, 10);
  std::set<std::int64_t> found;
  std::size_t kills = 0;
  for (bool killed = true; killed;) {
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path() / "run");
    std::filesystem::copy(folder_.root(), folder.root(), std::filesystem::copy_options::recursive);
    killed = test::kill_at_syscall(kills + 1, [&] {
      AsyncWriter writer(folder);
      save(writer, 2, 20, {.keep_last = 1});
      writer.finish();
    });
    kills += killed ? 1 : 0;
    const std::int64_t step = recover_newest(folder).step;
    test::expect_is(Reader(folder, step), step, step == 1 ? 10 : 20);
    found.insert(step);
  }
  EXPECT_THAT(found, ElementsAre(1, 2));
  EXPECT_GE(kills, 40u);
}
#endif

}  // namespace
}  // namespace yoke::checkpoint
