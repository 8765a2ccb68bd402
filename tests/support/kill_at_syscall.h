#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace yoke::test {

/// Runs `work` in a forked child and SIGKILLs it as it enters its n-th system call (from 1), which
/// then does not happen. Returns true if it was killed, false if it finished with fewer calls.
/// Calling it for n = 1, 2,
/// ... until it returns false shows every state that a crash of the process can leave on disk.
///
/// Counts the calls of all threads of the child (their order may vary; with one thread it does
/// not). The child leaves by _exit. Throws std::runtime_error if it fails by itself (an exception
/// in `work`, a signal), or if ptrace is not permitted here. Blocks until the child is gone and
/// leaves no process behind.
bool kill_at_syscall(std::size_t n, const std::function<void()>& work);

/// The numbers (SYS_write ...) of the system calls that `work` makes, in order.
std::vector<long> system_calls_of(const std::function<void()>& work);

struct SystemCall {
  long number = -1;
  std::string path{};  ///< of the file that its first argument is a descriptor of, if it is one
};

struct Disturbed {
  bool happened = false;            ///< false: `work` makes fewer such calls
  SystemCall call{};                ///< the one that failed
  std::vector<SystemCall> after{};  ///< those that followed
};

/// Runs `work` in a forked child, in which the n-th call (from 1) of system call `number` does not
/// happen and returns `error` (EIO, ENOSPC ...). `work` must get over it and return.
Disturbed fail_at_syscall(std::size_t n, long number, int error, const std::function<void()>& work);

/// The same, but the n-th write(2) takes one byte of what it is given and says so.
Disturbed shorten_write(std::size_t n, const std::function<void()>& work);

}  // namespace yoke::test
