// Supervisor and start_process: real processes, real signals. Order between processes is made by
// pipes: a pipe's end is seen when the last process that holds it for writing has ended.

#include "yoke/net/process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <ctime>

#include "yoke/base/error.h"
#include "yoke/base/files.h"
#include "yoke/net/supervisor.h"

namespace yoke::net {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

struct Channel {
  std::array<int, 2> ends{};
  Channel() { EXPECT_EQ(::pipe(ends.data()), 0); }
  ~Channel() {
    close_writer();
    ::close(ends[0]);
  }
  void close_writer() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
  /// Everything until the last writer has ended.
  std::string read_all() {
    close_writer();
    std::string text;
    std::array<char, 256> piece;
    for (ssize_t n; (n = ::read(ends[0], piece.data(), piece.size())) > 0;) {
      text.append(piece.data(), static_cast<std::size_t>(n));
    }
    return text;
  }
};

ProcessSpec quiet(int rank) {
  ProcessSpec spec;
  spec.rank = rank;
  spec.console = ProcessSpec::Console::kNone;
  return spec;
}

ProcessSpec work(int rank, std::function<int()> function) {
  auto spec = quiet(rank);
  spec.work = std::move(function);
  return spec;
}

ProcessSpec shell(int rank, std::string script) {
  auto spec = quiet(rank);
  spec.program = {"sh", "-c", std::move(script)};
  return spec;
}

int wait_for_ever() {
  while (true) ::pause();
}

SupervisorOutcome supervise(const std::vector<ProcessSpec>& specs, SupervisorOptions options = {}) {
  Supervisor supervisor(options);
  for (const auto& spec : specs) supervisor.start(spec);
  return supervisor.run();
}

TEST(Supervisor, PassesOnSuccessAndSaved) {
  EXPECT_EQ(supervise({work(0, [] { return 0; }), work(1, [] { return 0; })}).exit_code, 0);
  auto saved = supervise({work(0, [] { return int{kExitSaved}; }), work(1, [] { return 0; })});
  EXPECT_EQ(saved.exit_code, kExitSaved);
  EXPECT_FALSE(saved.failure);
}

TEST(Supervisor, EndsTheOthersWhenOneFailsAndPassesItsCodeOn) {
  auto outcome =
      supervise({work(0, wait_for_ever), work(1, [] { return 65; }), work(2, wait_for_ever)});
  EXPECT_EQ(outcome.exit_code, 65);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_EQ(outcome.failure->signal, 0);
  EXPECT_EQ(outcome.ends.size(), 3u);
}

TEST(Supervisor, NamesTheSignalThatKilledARank) {
  auto outcome = supervise({work(0, wait_for_ever), work(1, [] { return ::raise(SIGKILL); })});
  EXPECT_EQ(outcome.exit_code, 128 + SIGKILL);
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_EQ(signal_name(outcome.failure->signal), "SIGKILL");
  EXPECT_FALSE(outcome.failure->memory_was_short);
}

TEST(Supervisor, TheRootCauseWinsOverRanksThatLostAPeerEarlier) {
  Channel channel;
  auto follower = work(0, [&] {
    auto pid = std::to_string(::getpid());
    return ::write(channel.ends[1], pid.data(), pid.size()) < 0 ? 1 : int{kExitPeerLost};
  });
  auto root = work(1, [&] {
    auto pid = static_cast<pid_t>(std::stol(channel.read_all()));
    // The number is free once the supervisor has reaped the follower.
    while (::kill(pid, 0) == 0) ::sched_yield();
    return ::raise(SIGABRT);  // AddressSanitizer leaves this one alone.
  });
  Supervisor supervisor({.settle = 30s});
  supervisor.start(follower);
  supervisor.start(root);
  channel.close_writer();
  auto outcome = supervisor.run();
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->rank, 1);
  EXPECT_EQ(outcome.failure->signal, SIGABRT);
  EXPECT_EQ(outcome.exit_code, 128 + SIGABRT);
  EXPECT_EQ(outcome.ends.back().rank, 1) << "the cause was to be seen last";
}

TEST(Supervisor, WaitsForTheCauseWhenOnlyThoseThatLostAPeerHaveEnded) {
  auto slow = work(0, [] {
    ::usleep(300'000);
    return 7;
  });
  auto follower = work(1, [] { return static_cast<int>(kExitPeerLost); });
  auto outcome = supervise({slow, follower}, {.settle = 1ms});
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.failure->rank, 0);
}

TEST(Supervisor, SleepsWhileItWaitsForTheOthersToEnd) {
  auto failing = work(0, [] { return 3; });
  auto slow = work(1, [] {
    ::signal(SIGTERM, SIG_IGN);
    ::usleep(700'000);
    return 0;
  });
  auto before = ::clock();
  supervise({failing, slow}, {.settle = 1ms, .failure_grace = 20s});
  EXPECT_LT(::clock() - before, CLOCKS_PER_SEC / 5) << "processor time of this process";
}

TEST(Supervisor, NamesARankThatIsStoppedWhileTheOthersGiveUp) {
  Channel channel;
  auto stopped = work(0, [&] {
    auto pid = std::to_string(::getpid());
    if (::write(channel.ends[1], pid.data(), pid.size()) < 0) return 1;
    channel.close_writer();
    return ::raise(SIGSTOP);
  });
  auto follower = work(1, [&] {
    auto pid = static_cast<pid_t>(std::stol(channel.read_all()));
    while (!is_stopped(pid)) ::sched_yield();
    return int{kExitPeerLost};
  });
  Supervisor supervisor({.settle = 10ms});
  supervisor.start(stopped);
  channel.close_writer();
  supervisor.start(follower);
  auto outcome = supervisor.run();
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->rank, 0);
  EXPECT_TRUE(outcome.failure->stopped);
  EXPECT_EQ(outcome.exit_code, kExitPeerLost);
}

TEST(Supervisor, WritesLogsAndKeepsTheLastLines) {
  TemporaryFolder folder;
  auto spec = shell(3,
                    "for i in $(seq 30); do echo line $i; done; printf 'a\\rb\\033[K\\r\\n' >&2; "
                    "printf 'no end' >&2; exit 1");
  spec.log_out = folder.path() / "out";
  spec.log_err = folder.path() / "err";
  auto outcome = supervise({spec});
  ASSERT_TRUE(outcome.failure);
  EXPECT_EQ(outcome.failure->last_lines.size(), 20u);
  EXPECT_THAT(outcome.failure->last_lines, Contains("line 30"));
  EXPECT_THAT(outcome.failure->last_lines, Contains("no end"));
  EXPECT_THAT(read_file(spec.log_out), HasSubstr("line 1\nline 2\n"));
  EXPECT_EQ(read_file(spec.log_err), "b\nno end\n");
}

TEST(Supervisor, GivesProgramsTheirEnvironmentAndNoInput) {
  TemporaryFolder folder;
  auto spec = shell(0, "cat; echo $GREETING");
  spec.environment = {"GREETING=hello=you"};
  spec.log_out = folder.path() / "out";
  EXPECT_EQ(supervise({spec}).exit_code, 0);
  EXPECT_EQ(read_file(spec.log_out), "hello=you\n");
}

TEST(Supervisor, SaysThatAProgramCannotBeStarted) {
  auto missing = quiet(0);
  missing.program = {"/no/such/program"};
  auto outcome = supervise({missing});
  EXPECT_EQ(outcome.exit_code, 127);
  ASSERT_TRUE(outcome.failure);
  EXPECT_THAT(outcome.failure->last_lines, ElementsAre(HasSubstr("cannot start /no/such/program")));
}

TEST(Supervisor, PassesTheFirstSignalOnSoThatRanksCanSave) {
  auto saving = [](int rank) {
    // The signal is sent after the trap is set, by the rank itself.
    return shell(rank, "trap 'exit 75' TERM; kill -TERM $PPID; while :; do sleep 0.01; done");
  };
  auto outcome = supervise({saving(0)});
  EXPECT_EQ(outcome.exit_code, kExitSaved);
  EXPECT_EQ(outcome.stop_signal, SIGTERM);
  EXPECT_FALSE(outcome.failure);
}

TEST(Supervisor, RanksThatDieOfTheSignalThatWePassedOnHaveNotFailed) {
  auto outcome = supervise({shell(0, "kill -TERM $PPID; sleep 1000"), work(1, wait_for_ever)});
  EXPECT_EQ(outcome.exit_code, 128 + SIGTERM);
  EXPECT_FALSE(outcome.failure);
}

TEST(Supervisor, ARankThatFailsWhileItStopsHasFailed) {
  auto outcome =
      supervise({shell(0, "trap 'exit 74' INT; kill -INT $PPID; while :; do sleep 0.01; done")});
  EXPECT_EQ(outcome.exit_code, 74);
  ASSERT_TRUE(outcome.failure);
}

class Disposition {
 public:
  Disposition(int signal, void (*handler)(int))
      : signal_(signal), before_(::signal(signal, handler)) {}
  ~Disposition() { ::signal(signal_, before_); }

 private:
  int signal_;
  void (*before_)(int);
};

TEST(Supervisor, AHangUpIsPassedOnUnlessItIsIgnored) {
  const char* script = "trap 'exit 75' HUP; kill -HUP $PPID; while :; do sleep 0.01; done";
  {
    Disposition standard(SIGHUP, SIG_DFL);
    EXPECT_EQ(supervise({shell(0, script)}).exit_code, kExitSaved);
  }
  Disposition ignored(SIGHUP, SIG_IGN);
  EXPECT_EQ(supervise({shell(0, "kill -HUP $PPID; exit 3")}).exit_code, 3);
}

TEST(Supervisor, WaitsForItsRanksAlsoWhenOurParentIgnoresTheEndOfChildren) {
  Disposition ignored(SIGCHLD, SIG_IGN);
  EXPECT_EQ(supervise({work(0, [] { return 5; })}).exit_code, 5);
}

TEST(Supervisor, TheSecondSignalKillsAtOnce) {
  auto stubborn = shell(0,
                        "trap 'kill -TERM $PPID' INT; trap '' TERM; kill -INT $PPID; "
                        "while :; do sleep 0.01; done");
  auto outcome = supervise({stubborn}, {.stop_grace = 1000s});
  EXPECT_EQ(outcome.exit_code, kExitTerminated);
  EXPECT_FALSE(outcome.failure);
}

TEST(Supervisor, KillsRanksThatDoNotStopInTime) {
  auto stubborn = shell(0, "trap '' TERM; kill -TERM $PPID; while :; do sleep 0.01; done");
  EXPECT_EQ(supervise({stubborn}, {.stop_grace = 50ms}).exit_code, 128 + SIGTERM);
  auto deaf = shell(0, "trap '' TERM; while :; do sleep 0.01; done");
  auto failing = work(1, [] { return 1; });
  EXPECT_EQ(supervise({deaf, failing}, {.settle = 1ms, .failure_grace = 50ms}).exit_code, 1);
}

TEST(Supervisor, LeavesNothingOfARanksGroup) {
  Channel channel;
  auto spec = shell(0, cat("sleep 60 & echo started >&", channel.ends[1]));
  auto start = Clock::now();
  EXPECT_EQ(supervise({spec}).exit_code, 0);
  // The grandchild has inherited the writing end: this returns when it is dead.
  EXPECT_EQ(channel.read_all(), "started\n");
  EXPECT_LT(Clock::now() - start, 30s);
}

TEST(Supervisor, RanksDieWithTheSupervisor) {
  Channel ranks;
  pid_t supervisor = ::fork();
  if (supervisor == 0) {
    supervise({work(0,
                    [&] {
                      if (::write(ranks.ends[1], "x", 1) < 0) return 1;
                      ::kill(::getppid(), SIGKILL);
                      return wait_for_ever();
                    }),
               work(1, wait_for_ever)});
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(supervisor, &status, 0);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  // Ends only when every holder of the pipe, so every rank, is gone.
  EXPECT_EQ(ranks.read_all(), "x");
}

TEST(Supervisor, LeavesTheSignalMaskAsItWas) {
  sigset_t before;
  ::sigprocmask(SIG_BLOCK, nullptr, &before);
  auto outcome = supervise({work(0, [] {
    sigset_t mask;
    ::sigprocmask(SIG_BLOCK, nullptr, &mask);
    return sigismember(&mask, SIGTERM) || sigismember(&mask, SIGCHLD) ? 1 : 0;
  })});
  EXPECT_EQ(outcome.exit_code, 0) << "a rank has the mask that we had";
  sigset_t after;
  ::sigprocmask(SIG_BLOCK, nullptr, &after);
  for (int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD}) {
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
  }
}

TEST(Supervisor, AnExceptionOfAForkedRankIsItsExitCode) {
  auto outcome = supervise({work(0, []() -> int { throw DataError("row 7 has no label"); })});
  EXPECT_EQ(outcome.exit_code, kExitData);
  ASSERT_TRUE(outcome.failure);
  EXPECT_THAT(outcome.failure->last_lines, ElementsAre(HasSubstr("row 7 has no label")));
}

TEST(Signals, HaveNames) {
  EXPECT_EQ(signal_name(SIGBUS), "SIGBUS");
  EXPECT_EQ(signal_name(1000), "signal 1000");
  EXPECT_EQ(signal_words(SIGSEGV), "segmentation fault");
}

}  // namespace
}  // namespace yoke::net
