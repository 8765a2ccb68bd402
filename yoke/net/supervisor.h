#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/base/exit_code.h"
#include "yoke/net/children.h"
#include "yoke/net/process.h"

namespace yoke::net {

struct SupervisorOptions {
  /// From the first failure until it is decided which rank caused it: a rank that lost a peer may
  /// be seen to end before the peer itself.
  Clock::duration settle = std::chrono::milliseconds(300);
  /// And so long, if all that have ended by then have lost a peer, and none that still runs is
  /// stopped: the peer that they lost may take its time to end.
  Clock::duration settle_of_followers = std::chrono::seconds(2);
  /// From SIGTERM for the ranks that outlive a failure until SIGKILL, unless those have been asked
  /// to stop before.
  Clock::duration failure_grace = std::chrono::seconds(5);
  /// From the first SIGINT, SIGTERM or SIGHUP that was passed on until SIGKILL: time to finish a
  /// step and save.
  Clock::duration stop_grace = std::chrono::seconds(60);
};

/// The rank that caused the end of the others.
struct ProcessFailure {
  int rank = 0;
  pid_t pid = 0;
  int exit_code = 0;     ///< 128 + signal when a signal killed it
  int signal = 0;        ///< 0: it ended by itself
  bool stopped = false;  ///< it was found stopped (SIGSTOP) while the others waited for it
  bool memory_was_short =
      false;  ///< SIGKILL, and the kernel had just killed something for want of memory
  std::vector<std::string> last_lines;  ///< at most 20, of both streams
};

struct SupervisorOutcome {
  /// The failed rank's; 128 + signal when a signal to us ended them; kExitSaved if a rank ended
  /// with that; 0.
  int exit_code = 0;
  int stop_signal = 0;  ///< SIGINT, SIGTERM or SIGHUP, if one came
  /// The errno of the write to our stdout that failed; 0: all that the ranks said was written.
  int stdout_error = 0;
  std::optional<ProcessFailure> failure;
  std::vector<ProcessEnd> ends;  ///< in the order in which they were seen
};

/// Starts the ranks of one host and watches over them, in one thread and one poll loop.
///
/// A rank that ends with 0 or kExitSaved is content. Any other end is a failure: after `settle`,
/// the first rank that ended by a signal or with another code than kExitPeerLost is named the
/// cause, else the first with kExitPeerLost (or a rank that is found stopped: those that waited for
/// it are its victims). The others get SIGTERM, and SIGKILL after `failure_grace`.
///
/// SIGINT, SIGTERM and SIGHUP to this process are passed on to all process groups, SIGUSR1 to the
/// ranks themselves; after `stop_grace`, at a second one of the first three, or at SIGQUIT, the
/// groups are killed. These signals (but those that are ignored), and SIGCHLD, are blocked from
/// construction to destruction: no handler is installed.
///
/// What a rank leaves in its process group is killed when the rank ends. The destructor kills and
/// reaps what still runs. Not thread-safe; make it where there is one thread.
class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options = {});

  /// Throws IoError for its log, ResourceError when no process can be started.
  void start(const ProcessSpec& spec) { children_.start(spec); }
  /// Returns when all have ended, are reaped, and their output is written.
  SupervisorOutcome run();

 private:
  void read_signals();
  void ended(const ProcessEnd& end);
  void check_deadlines();
  void decide();
  const ProcessEnd* cause() const;
  bool only_followers() const;
  SupervisorOutcome outcome();

  SupervisorOptions options_;
  long memory_kills_before_ = 0;
  Children children_;
  std::vector<ProcessEnd> ends_;
  std::optional<ProcessFailure> failure_;
  std::optional<Deadline> decide_at_;
  bool waited_for_cause_ = false;
  std::optional<Deadline> kill_at_;
  int stop_signal_ = 0;
  int killed_by_signal_ = 0;  ///< the second one, or SIGQUIT
};

}  // namespace yoke::net
