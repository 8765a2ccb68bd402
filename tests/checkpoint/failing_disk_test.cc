// A disk that is full or fails in the middle of a save: the save is an error, the checkpoints
// before it stay, nothing of it is left, and no failed fsync is tried again on the same file (chaos
// cases: ENOSPC on a tmpfs of 1 MiB; EIO, short writes, failed fsyncs, EINTR at every call).

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "tests/checkpoint/sample.h"
#include "tests/support/captured_stderr.h"
#include "tests/support/kill_at_syscall.h"
#include "yoke/base/error.h"
#include "yoke/checkpoint/async_writer.h"

namespace yoke::checkpoint {
namespace {

namespace fs = std::filesystem;

enum Ending { kNotEnded, kSaved, kIoError };

/// Says without a system call how the traced child's save ended.
class SharedEnding {
 public:
  SharedEnding()
      : place_(static_cast<Ending*>(::mmap(nullptr, sizeof(Ending), PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedEnding() { ::munmap(place_, sizeof(Ending)); }
  SharedEnding(const SharedEnding&) = delete;
  SharedEnding& operator=(const SharedEnding&) = delete;
  Ending& value() { return *place_; }

 private:
  Ending* place_;
};

using Disturb = std::function<test::Disturbed(std::size_t n, const std::function<void()>& work)>;

/// Disturbs a save of step 2, on top of steps 0 and 1, at its n-th call for n = 1, 2 ..., and looks
/// at what each leaves; returns how many there were. `check` sees each.
std::size_t disturb_everywhere(
    const Disturb& disturb,
    const std::function<void(const RunFolder&, const test::Disturbed&, Ending)>& check) {
  const TemporaryFolder original;
  test::save(RunFolder(original.path()), 0, 5);
  test::save(RunFolder(original.path()), 1, 10);
  for (std::size_t n = 1;; ++n) {
    const TemporaryFolder temporary;
    const RunFolder folder(temporary.path() / "run");
    fs::copy(original.path(), folder.root(), fs::copy_options::recursive);
    SharedEnding ending;
    const auto disturbed = disturb(n, [&] {
      try {
        test::save(folder, 2, 20, 2);
        ending.value() = kSaved;
      } catch (const IoError&) {
        ending.value() = kIoError;
      }
    });
    const std::int64_t step = newest_intact(folder);
    test::expect_is(Reader(folder, step), step, static_cast<std::uint64_t>(10 * step));
    EXPECT_GE(step, ending.value() == kSaved ? 2 : 1);
    EXPECT_NE(ending.value(), kNotEnded);
    if (!disturbed.happened) return n - 1;
    check(folder, disturbed, ending.value());
    // The next save succeeds, whatever the one before has left.
    test::save(folder, 3, 30, 2);
    EXPECT_EQ(newest_intact(folder), 3);
    for (const auto& name : test::listing(folder))
      EXPECT_FALSE(name.ends_with("tmp")) << name << " after call " << n;
  }
}

Disturb failing(long number, int error) {
  return [=](std::size_t n, const std::function<void()>& work) {
    return test::fail_at_syscall(n, number, error, work);
  };
}

TEST(FailingDisk, AFailedSyncIsFinalForItsFile) {
  std::set<std::string> synced;
  disturb_everywhere(failing(SYS_fsync, EIO), [&](const RunFolder& folder,
                                                  const test::Disturbed& disturbed, Ending ending) {
    const std::string& path = disturbed.call.path;
    const std::string name = fs::path(path).filename();
    synced.insert(name.starts_with(".LATEST.") ? "LATEST" : name);
    EXPECT_EQ(ending, kIoError) << path;
    const bool is_file = path.ends_with(".bin") || path.ends_with("MANIFEST.json");
    if (is_file) {
      EXPECT_EQ(steps_present(folder), (std::vector<std::int64_t>{0, 1})) << path;
      EXPECT_EQ(read_file(folder.latest()), "step-00000001\n") << path;
    }
    for (const auto& call : disturbed.after)
      EXPECT_FALSE(call.number == SYS_fsync && call.path == path) << path;
  });
  EXPECT_THAT(synced, testing::ElementsAre("LATEST", "MANIFEST.json", "checkpoints",
                                           "shard-0000.bin", "step-00000002.g0.tmp"));
}

TEST(FailingDisk, AFailedWriteCloseOrRenameIsAnErrorAndLeavesTheOldState) {
  for (const auto& [number, error] : std::vector<std::pair<long, int>>{{SYS_write, EIO},
                                                                       {SYS_write, ENOSPC},
                                                                       {SYS_close, EIO},
                                                                       {SYS_rename, EIO},
                                                                       {SYS_mkdir, ENOSPC},
                                                                       {SYS_openat, ENOSPC}}) {
    const auto count = disturb_everywhere(
        failing(number, error),
        [&, number = number](const RunFolder& folder, const test::Disturbed& disturbed, Ending) {
          // What failed before the rename has left no trace.
          if (number == SYS_write && disturbed.call.path.find(".tmp/") != std::string::npos) {
            EXPECT_EQ(steps_present(folder), (std::vector<std::int64_t>{0, 1}));
            EXPECT_EQ(test::listing(folder).size(), 3u) << disturbed.call.path;
          }
        });
    EXPECT_GE(count, 1u) << number;
  }
}

TEST(FailingDisk, InterruptedAndShortWritesAreGoneOnWith) {
  const auto saved = [](const RunFolder& folder, const test::Disturbed&, Ending ending) {
    EXPECT_EQ(ending, kSaved);
    test::expect_is(Reader(folder, 2), 2, 20);
  };
  EXPECT_GE(disturb_everywhere(failing(SYS_write, EINTR), saved), 5u);
  EXPECT_GE(disturb_everywhere(test::shorten_write, saved), 5u);
}

/// Mounts a tmpfs of 1 MiB on `place`, which this process alone sees.
bool mount_small_disk(const fs::path& place) {
  if (::unshare(CLONE_NEWNS) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  return ::mount("none", place.c_str(), "tmpfs", 0, "size=1m") == 0;
}

/// Writes until `room` bytes are left.
void fill_up_to(const fs::path& folder, std::uint64_t room) {
  struct statvfs disk {};
  ::statvfs(folder.c_str(), &disk);
  const std::uint64_t free = disk.f_bavail * disk.f_bsize;
  test::put(folder / "filler", std::string(free - std::min(free, room), 'x'));
}

/// 0, or the number of what is wrong.
int save_on_a_full_disk(const RunFolder& folder, std::uint64_t room) {
  const test::CapturedStderr log;
  AsyncWriter writer(folder);
  const auto save = [&](std::int64_t step) {
    const test::SampleState state(step, static_cast<std::uint64_t>(10 * step));
    writer.save(state.snapshot, state.extra(), {});
    writer.finish();
    const auto outcomes = writer.outcomes();
    return outcomes.size() == 1 ? outcomes[0].kind : SaveOutcome::Kind::kFenced;
  };
  if (save(1) != SaveOutcome::Kind::kCommitted) return 1;
  const auto before = test::listing(folder);
  fill_up_to(folder.root(), room);
  const auto kind = save(2);
  if (kind == SaveOutcome::Kind::kFenced) return 2;
  const bool committed = kind == SaveOutcome::Kind::kCommitted;
  const std::int64_t newest = newest_intact(folder);
  if (newest != 2 && (committed || newest != 1)) return 3;
  if (newest == 1 && test::listing(folder) != before) return 4;
  if (!committed && log.text().find("of step 2 was not written") == std::string::npos) return 5;
  test::expect_is(Reader(folder, 1), 1, 10);
  fs::remove(folder.root() / "filler");  // There is space again.
  if (save(3) != SaveOutcome::Kind::kCommitted) return 6;
  test::expect_is(Reader(folder, 3), 3, 30);
  if (testing::Test::HasFailure()) return 7;
  return committed ? 100 : 0;
}

TEST(FailingDisk, AFullTmpfsCostsOneSaveAtWhateverPageItEnds) {
  int full = 0, enough = 0;
  for (std::uint64_t pages = 0; pages <= 8; ++pages) {
    const TemporaryFolder temporary;
    const pid_t child = ::fork();
    if (child == 0) {
      if (!mount_small_disk(temporary.path())) ::_exit(99);
      ::_exit(save_on_a_full_disk(RunFolder(temporary.path()), pages * 4096));
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status)) << status;
    const int code = WEXITSTATUS(status);
    ASSERT_NE(code, 99) << "this test mounts a tmpfs: it needs root, or user namespaces";
    EXPECT_TRUE(code == 0 || code == 100) << code << " with room for " << pages << " pages";
    full += code == 0 ? 1 : 0;
    enough += code == 100 ? 1 : 0;
  }
  EXPECT_GE(full, 2);
  EXPECT_GE(enough, 2);
}

}  // namespace
}  // namespace yoke::checkpoint
