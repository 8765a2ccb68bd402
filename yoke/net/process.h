#pragma once

#include <signal.h>
#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace yoke::net {

/// What one child process runs, and where its output goes.
struct ProcessSpec {
  int rank = 0;
  /// Name and arguments; the name is looked for in PATH. Empty: `work` runs in a fork of this
  /// process.
  std::vector<std::string> program;
  /// Its value is the exit code. The child ends by _exit: no destructor of the parent's objects
  /// runs in it.
  std::function<int()> work;
  std::vector<std::string> environment;  ///< "NAME=value", added to this process's
  std::filesystem::path log_out;         ///< empty: none
  std::filesystem::path log_err;

  enum class Console {
    kNone,
    kRaw,      ///< bytes as they come
    kLabelled  ///< whole lines, each after "[3] "
  };
  Console console = Console::kLabelled;
  bool out_to_stderr =
      false;  ///< the console shows its stdout on stderr too: ours is for one result
};

/// A process that was started, and the reading ends of its two pipes (they never block).
struct StartedProcess {
  pid_t pid = -1;
  int out = -1;
  int err = -1;
};

/// Starts a child in a process group of its own (its id is the child's pid), with stdin from
/// /dev/null and stdout and stderr into pipes. The kernel kills it (SIGKILL) when the calling
/// thread ends, however it ends.
///
/// The child's signal mask is `mask`; the descriptors in `close_in_child` are closed in a child
/// that runs `work` (those of a program close by themselves: all of ours are close-on-exec). A
/// program that cannot be started ends with 127 (there is none) or 126, and says so on its stderr.
/// Throws ResourceError when there are no processes or descriptors left.
///
/// Call it from a process that has one thread: the child of a fork owns only the calling one.
StartedProcess start_process(const ProcessSpec& spec, const sigset_t& mask,
                             std::span<const int> close_in_child);

/// "SIGKILL" for 9; "signal 77" for one without a name.
std::string signal_name(int signal);

/// "segmentation fault": the system's words for it.
std::string signal_words(int signal);

/// True for a process that SIGSTOP (or a debugger) holds.
bool is_stopped(pid_t pid);
/// True for a process that has been killed, or has ended, and is not through with it.
bool is_dying(pid_t pid);

/// How many processes the kernel has killed for want of memory, in this process's cgroup if that
/// can be read, else on the whole machine. Only differences mean something.
long out_of_memory_kills();

}  // namespace yoke::net
