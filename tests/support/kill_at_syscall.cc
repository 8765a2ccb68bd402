#include "tests/support/kill_at_syscall.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace yoke::test {
namespace {

constexpr int kSyscallStop = SIGTRAP | 0x80;  // what PTRACE_O_TRACESYSGOOD makes of it

[[noreturn]] void run_child(const std::function<void()>& work) {
  // A group of its own, so that the parent can wait for all of its threads and for nothing else.
  if (::setpgid(0, 0) != 0 || ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) ::_exit(101);
  ::raise(SIGSTOP);
  try {
    work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "in the traced child: %s\n", error.what());
    ::_exit(102);
  }
  // Not _exit, to which the sanitizers add calls of their own.
  ::syscall(SYS_exit_group, 0);
  ::_exit(103);
}

class Tracer {
 public:
  explicit Tracer(const std::function<void()>& work) : child_(::fork()) {
    if (child_ < 0) fail("fork");
    if (child_ == 0) run_child(work);
    int status = 0;
    if (::waitpid(child_, &status, 0) != child_) fail("waitpid");
    if (!WIFSTOPPED(status)) {
      reaped_ = true;
      throw std::runtime_error("the child could not be traced: ptrace is not permitted here");
    }
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE;
    if (::ptrace(PTRACE_SETOPTIONS, child_, nullptr, options) != 0) fail("ptrace");
    resume(child_, 0);
  }

  ~Tracer() {
    if (reaped_) return;
    ::kill(child_, SIGKILL);
    while (::waitpid(-child_, nullptr, __WALL) > 0) {
    }
  }

  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// Runs the child to its next entry of a system call and returns its number, or -1 when it has
  /// finished.
  long next_call() {
    for (;;) {
      if (stopped_ != 0) resume(stopped_, 0);
      stopped_ = 0;
      int status = 0;
      const pid_t thread = ::waitpid(-child_, &status, __WALL);
      if (thread < 0 && errno == EINTR) continue;
      if (thread < 0) fail("waitpid");
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        if (thread != child_) continue;
        reaped_ = true;
        if (WIFSIGNALED(status)) throw std::runtime_error(ended("by signal ", WTERMSIG(status)));
        if (WEXITSTATUS(status) != 0) throw std::runtime_error(ended("with ", WEXITSTATUS(status)));
        return -1;
      }
      if (WSTOPSIG(status) == kSyscallStop) {
        stopped_ = thread;
        struct __ptrace_syscall_info info {};
        if (::ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) < 0) fail("ptrace");
        if (info.op == PTRACE_SYSCALL_INFO_ENTRY) return static_cast<long>(info.entry.nr);
        continue;
      }
      // Events of ptrace and the first stop of a new thread are ours; other signals are the
      // child's.
      const bool ours = status >> 16 != 0 || WSTOPSIG(status) == SIGSTOP;
      resume(thread, ours ? 0 : WSTOPSIG(status));
    }
  }

  /// The call at whose entry the child stands.
  SystemCall current() const {
    const user_regs_struct registers = this->registers();
    std::error_code none;
    const auto path = std::filesystem::read_symlink(
        "/proc/" + std::to_string(stopped_) + "/fd/" + std::to_string(registers.rdi), none);
    return {static_cast<long>(registers.orig_rax), path.string()};
  }

  /// It does not happen, and returns `error`.
  void fail_current(int error) {
    user_regs_struct registers = this->registers();
    registers.orig_rax = static_cast<unsigned long long>(-1);
    set(registers);
    resume(stopped_, 0);
    int status = 0;
    if (::waitpid(stopped_, &status, __WALL) != stopped_ || !WIFSTOPPED(status)) fail("waitpid");
    registers = this->registers();
    registers.rax = static_cast<unsigned long long>(-static_cast<long long>(error));
    set(registers);
  }

  /// Its third argument becomes 1.
  void shorten_current() {
    user_regs_struct registers = this->registers();
    registers.rdx = 1;
    set(registers);
  }

 private:
  user_regs_struct registers() const {
    user_regs_struct registers{};
    if (::ptrace(PTRACE_GETREGS, stopped_, nullptr, &registers) != 0) fail("ptrace");
    return registers;
  }
  void set(user_regs_struct registers) const {
    if (::ptrace(PTRACE_SETREGS, stopped_, nullptr, &registers) != 0) fail("ptrace");
  }

  static std::string ended(const std::string& how, int value) {
    return "the traced child ended " + how + std::to_string(value);
  }

  [[noreturn]] static void fail(const std::string& call) {
    throw std::runtime_error(call + " failed: " + std::strerror(errno));
  }

  static void resume(pid_t thread, long signal) {
    // ESRCH: it was killed meanwhile, which the next wait reports.
    if (::ptrace(PTRACE_SYSCALL, thread, nullptr, signal) != 0 && errno != ESRCH) fail("ptrace");
  }

  pid_t child_;
  pid_t stopped_ = 0;
  bool reaped_ = false;
};

Disturbed disturb(std::size_t n, long number, const std::function<void()>& work,
                  const std::function<void(Tracer&)>& how) {
  Tracer tracer(work);
  Disturbed result;
  std::size_t seen = 0;
  for (long call = tracer.next_call(); call >= 0; call = tracer.next_call()) {
    if (result.happened) {
      result.after.push_back(tracer.current());
    } else if (call == number && ++seen == n) {
      result.happened = true;
      result.call = tracer.current();
      how(tracer);
    }
  }
  return result;
}

}  // namespace

bool kill_at_syscall(std::size_t n, const std::function<void()>& work) {
  Tracer tracer(work);
  for (std::size_t call = 1; tracer.next_call() >= 0; ++call) {
    if (call == n) return true;  // The destructor kills it where it stands.
  }
  return false;
}

std::vector<long> system_calls_of(const std::function<void()>& work) {
  Tracer tracer(work);
  std::vector<long> calls;
  for (long call = tracer.next_call(); call >= 0; call = tracer.next_call()) calls.push_back(call);
  return calls;
}

Disturbed fail_at_syscall(std::size_t n, long number, int error,
                          const std::function<void()>& work) {
  return disturb(n, number, work, [&](Tracer& tracer) { tracer.fail_current(error); });
}

Disturbed shorten_write(std::size_t n, const std::function<void()>& work) {
  return disturb(n, SYS_write, work, [](Tracer& tracer) { tracer.shorten_current(); });
}

}  // namespace yoke::test
