#include "tests/support/kill_at_syscall.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <thread>

namespace yoke::test {
namespace {

/// A pipe on which the child reports how far it came: its calls of write(2), one byte each.
struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends), 0); }
  ~Pipe() {
    ::close(ends[0]);
    ::close(ends[1]);
  }
  std::size_t drain() {
    char bytes[64];
    const ssize_t zero = ::write(ends[1], "!", 1);  // so that read never blocks
    return static_cast<std::size_t>(::read(ends[0], bytes, sizeof bytes) - zero);
  }
  int ends[2];
};

TEST(KillAtSyscall, TheNthCallDoesNotHappen) {
  Pipe pipe;
  const auto work = [&] {
    for (int i = 0; i < 5; ++i) {
      if (::syscall(SYS_write, pipe.ends[1], "x", 1) != 1) ::_exit(9);
    }
  };
  for (std::size_t n = 1; n <= 5; ++n) {
    EXPECT_TRUE(kill_at_syscall(n, work));
    EXPECT_EQ(pipe.drain(), n - 1);
  }
  EXPECT_TRUE(kill_at_syscall(6, work)) << "the call that ends the process";
  EXPECT_EQ(pipe.drain(), 5u);
  EXPECT_FALSE(kill_at_syscall(7, work));
  EXPECT_EQ(pipe.drain(), 5u);
}

TEST(KillAtSyscall, AFailingChildIsAnError) {
  EXPECT_THROW(kill_at_syscall(1000, [] { throw std::runtime_error("on purpose"); }),
               std::runtime_error);
  EXPECT_THROW(kill_at_syscall(1000, [] { ::raise(SIGTERM); }), std::runtime_error);
}

TEST(KillAtSyscall, LeavesNoProcess) {
  kill_at_syscall(1, [] { ::getpid(); });
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
}

TEST(DisturbedCalls, FailAsAskedAndThoseAfterThemAreNamed) {
  Pipe pipe;
  const auto work = [&] {
    const long first = ::syscall(SYS_write, pipe.ends[1], "xy", 2);
    const int error = errno;
    const long second = ::syscall(SYS_write, pipe.ends[1], "xy", 2);
    if (first != -1 || error != EIO || second != 2) throw std::runtime_error("not as asked");
  };
  const auto disturbed = fail_at_syscall(1, SYS_write, EIO, work);
  EXPECT_TRUE(disturbed.happened);
  EXPECT_TRUE(disturbed.call.path.starts_with("pipe:")) << disturbed.call.path;
  ASSERT_EQ(disturbed.after.size(), 2u) << "the second write, and the end";
  EXPECT_EQ(disturbed.after[0].number, SYS_write);
  EXPECT_EQ(disturbed.after[0].path, disturbed.call.path);
  EXPECT_EQ(pipe.drain(), 2u);
  EXPECT_FALSE(fail_at_syscall(3, SYS_write, EIO, [&] { ::getppid(); }).happened);
}

TEST(DisturbedCalls, AShortWriteTakesOneByte) {
  Pipe pipe;
  EXPECT_TRUE(shorten_write(2, [&] {
                if (::syscall(SYS_write, pipe.ends[1], "abc", 3) != 3 ||
                    ::syscall(SYS_write, pipe.ends[1], "abc", 3) != 1)
                  throw std::runtime_error("not as asked");
              }).happened);
  EXPECT_EQ(pipe.drain(), 4u);
}

TEST(SystemCalls, AreNamedInOrder) {
  const auto calls = system_calls_of([] {
    ::syscall(SYS_getppid);
    ::syscall(SYS_getuid);
  });
  EXPECT_EQ(calls, (std::vector<long>{SYS_getppid, SYS_getuid, SYS_exit_group}));
}

#ifndef YOKE_SANITIZED  // The sanitizers' threads do not start in a traced child.
TEST(SystemCalls, CountThoseOfThreads) {
  const auto calls = system_calls_of([] { std::thread([] { ::syscall(SYS_getuid); }).join(); });
  EXPECT_EQ(std::count(calls.begin(), calls.end(), SYS_getuid), 1);
}
#endif

}  // namespace
}  // namespace yoke::test
