#pragma once

#include <poll.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/net/process.h"
#include "yoke/net/process_output.h"

namespace yoke::net {

struct ProcessEnd {
  int rank = 0;
  pid_t pid = 0;
  int exit_code = 0;  ///< 128 + signal when a signal killed it
  int signal = 0;
  bool asked_for = false;  ///< we told it to end, and it ended of that
};

/// The child processes of one process, their output and their ends: the mechanics that whoever
/// decides about them (Supervisor, elastic::Agent) stands on. One thread and one poll loop.
///
/// From construction to destruction SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGUSR1 (but
/// those that are ignored) are blocked, and read from a descriptor: no handler is installed. The
/// destructor kills and reaps what still runs. Not thread-safe; make it where there is one thread.
class Children {
 public:
  Children();
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  struct Child {
    int rank = 0;
    pid_t pid = -1;
    bool running = true;
    bool told_to_end = false;
    LastLines last;
    std::unique_ptr<ProcessOutput> out;
    std::unique_ptr<ProcessOutput> err;

    void signal_group(int signal) const { ::kill(-pid, signal); }
  };

  /// Throws IoError for its log, ResourceError when no process can be started. The reference is
  /// valid until forget_ended().
  Child& start(const ProcessSpec& spec);
  std::span<const std::unique_ptr<Child>> all() const { return children_; }
  bool anyone_runs() const;
  /// Lets go of children that have ended.
  void forget_ended();

  /// Waits until a child or a signal needs something, one of `others` is ready (their revents are
  /// set), or the deadline; moves output meanwhile.
  void wait(std::span<pollfd> others, std::optional<Deadline> until);
  /// Signals that have come since the last call, without SIGCHLD.
  std::vector<int> take_signals();
  /// Those that have ended since the last call, killed by a signal first: of two ends that are
  /// found together, a signal is nearer to the cause than a code. Their output is complete, what
  /// was left in their process groups is killed. `stop_signal`: one that was passed on, or 0.
  std::vector<std::pair<Child*, ProcessEnd>> reap(int stop_signal);
  /// To the process groups of all that run; they are expected to end of it.
  void pass_on(int signal);

  ConsoleQueue& console_out() { return out_; }
  ConsoleQueue& console_err() { return err_; }
  bool console_waits() const { return !out_.empty() || !err_.empty(); }

 private:
  std::vector<int> descriptors() const;

  sigset_t mask_before_{};
  int signals_ = -1;  ///< signalfd
  ConsoleQueue out_, err_;
  std::vector<std::unique_ptr<Child>> children_;
};

}  // namespace yoke::net
