#include "yoke/cli/beforehand.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <iostream>

#include "yoke/base/error.h"
#include "yoke/base/fault.h"

namespace yoke::cli {
namespace {

void write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    auto written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno != EINTR) return;
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string read_all(int descriptor) {
  std::string text;
  std::array<char, 4096> piece;
  for (;;) {
    auto got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

[[noreturn]] void answer(const Assignment& assignment, int workers, pid_t parent, int descriptor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExitInternal);
  auto tell = [&](const std::string& text) { write_all(descriptor, text); };
  int code = guarded(
      [&] {
        FaultPlan::from_environment(-1, {});  // Only whether it can be read.
        tell(describe(assignment, workers));
        return kExitOk;
      },
      tell);
  ::_exit(code);
}

}  // namespace

Beforehand look_beforehand(const Assignment& assignment, int workers) {
  std::cout.flush();
  std::array<int, 2> ends{};
  pid_t parent = ::getpid();
  bool piped = ::pipe2(ends.data(), O_CLOEXEC) == 0;
  pid_t pid = piped ? ::fork() : -1;
  if (pid < 0) {
    std::string reason = std::strerror(errno);
    if (piped)
      for (int end : ends) ::close(end);
    throw ResourceError(cat("cannot start a process that looks at the configuration: ", reason,
                            ". Raise the limits of processes (ulimit -u) and open files (ulimit "
                            "-n)."));
  }
  if (pid == 0) answer(assignment, workers, parent, ends[1]);
  long kills_before = net::out_of_memory_kills();
  ::close(ends[1]);
  auto text = read_all(ends[0]);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  Beforehand result;
  if (WIFEXITED(status) && WEXITSTATUS(status) == kExitOk) {
    result.described = text;
    return result;
  }
  auto& failure = result.failure.emplace();
  failure.rank = -1;
  failure.pid = pid;
  if (WIFSIGNALED(status)) {
    failure.signal = WTERMSIG(status);
    failure.exit_code = 128 + failure.signal;
    failure.memory_was_short =
        failure.signal == SIGKILL && net::out_of_memory_kills() > kills_before;
    text = cat("the process that looked at data and model was killed by ",
               net::signal_name(failure.signal),
               failure.memory_was_short ? ", probably out of memory" : "", '.');
    std::cerr << "yoke: " << text << '\n';
  } else {
    failure.exit_code = WEXITSTATUS(status);
  }
  failure.last_lines.push_back(text);
  return result;
}

}  // namespace yoke::cli
