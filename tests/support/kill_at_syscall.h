#pragma once

#include <cstddef>
#include <functional>
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

}  // namespace yoke::test
