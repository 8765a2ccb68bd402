#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/net/world.h"

/// Runs a function as several ranks, as threads or as processes that may be killed. Nothing
/// outlives a call: threads are joined, processes reaped, and whatever runs past the limit is
/// killed.
namespace yoke::test {

/// Ranks as threads. Rethrows the first error (of the rank that failed first) when all have ended,
/// so the function must end in every rank when it fails in one: yoke's own deadlines see to that.
void run_threads(int size, const std::function<void(World)>& body);

/// How the process of one rank ended.
struct Outcome {
  int exit_code =
      -1;  ///< -1: ended by a signal. 0: the function returned. Else exit_code_of() its error
  int signal = 0;  ///< that ended it; SIGSTOP when it was still stopped after all others had ended
  bool overdue = false;  ///< killed by us at the limit
  std::string text;      ///< what the function returned, or the message of its error
  std::string error;  ///< "PeerLost", "Timeout", "CollectiveMismatch", "Aborted" ...; empty: none
  std::vector<int> ranks;  ///< that the error names
  double seconds = 0;      ///< from the start of all to the end of this one
};

/// For the assertions: all there is to know about an outcome, in one line.
std::ostream& operator<<(std::ostream& out, const Outcome& outcome);

/// Ranks as processes, forked from this one, that must have no threads at that time. The rendezvous
/// goes through a socket that is bound before the first fork. The children end by _exit.
///
/// `body` gets the place and the options, for tests of what happens before a World exists.
class RankProcesses {
 public:
  using Body = std::function<std::string(const Place&, const net::RendezvousOptions&)>;

  RankProcesses(int size, const Body& body);
  ~RankProcesses();  ///< kills and reaps what is left
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  pid_t pid(int rank) const;
  void send_signal(int rank, int signal);
  /// Waits until the process is stopped by a signal. False at the deadline.
  bool wait_until_stopped(int rank, Deadline deadline);
  /// Waits for the end of all. A rank that is stopped when all others have ended is killed; so is
  /// everything at the limit.
  std::vector<Outcome> wait(Clock::duration limit = std::chrono::seconds(60));

 private:
  struct Child;
  void read_report(Child& child);
  void check(Child& child);
  void reap(Child& child);

  std::vector<Child> children_;
  Clock::time_point start_ = Clock::now();
};

/// The usual form: `body` takes a World, and returns nothing or a string.
template <typename Body>
RankProcesses::Body with_world(Body body) {
  return [body](const Place& place, const net::RendezvousOptions& options) -> std::string {
    auto world = World::at(place, options);
    if constexpr (std::is_void_v<std::invoke_result_t<Body, World>>) {
      body(world);
      return "";
    } else {
      return body(world);
    }
  };
}

template <typename Body>
std::vector<Outcome> run_processes(int size, Body body,
                                   Clock::duration limit = std::chrono::seconds(60)) {
  RankProcesses processes(size, with_world(std::move(body)));
  return processes.wait(limit);
}

}  // namespace yoke::test
