#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "yoke/elastic/link.h"
#include "yoke/elastic/roster.h"
#include "yoke/net/children.h"
#include "yoke/net/supervisor.h"

namespace yoke::elastic {

struct AgentOptions {
  net::Address coordinator;
  std::string job;
  std::string token;
  int slots = 1;  ///< workers that this host takes
  std::function<net::ProcessSpec(WorkerId worker, int slot)> worker;
  /// The embedded coordinator, started first and again whenever it dies; empty: it runs elsewhere.
  std::function<net::ProcessSpec()> own_coordinator;
  Clock::duration stop_grace = std::chrono::seconds(60);    ///< as SupervisorOptions'
  Clock::duration failure_grace = std::chrono::seconds(5);  ///< as SupervisorOptions'
};

struct AgentOutcome {
  int exit_code = 0;
  int stop_signal = 0;                         ///< that came to us
  int stdout_error = 0;                        ///< errno of the write to our stdout that failed
  std::optional<net::ProcessFailure> failure;  ///< of the worker that ended the run
  std::string cause;                           ///< of the failure, as events.jsonl has it
  std::string why;                             ///< it was not answered by a new worker
};

/// The process on each host that starts workers, watches over them and holds their shared memory.
/// It decides nothing: it tells the coordinator what it sees, and does what it is told. One thread.
///
/// The first SIGINT, SIGTERM, SIGHUP or SIGUSR1 asks the coordinator to stop the run: all finish
/// their step and save. A second one, or SIGQUIT, kills.
class Agent {
 public:
  explicit Agent(AgentOptions options);
  /// Returns when the run is over, and all its processes here have ended.
  AgentOutcome run();

 private:
  struct Worker {
    int slot = 0;
    net::Children::Child* child = nullptr;
    bool was_stopped = false;  ///< when we were told to kill it
    bool was_dying = false;    ///< of something else
  };
  struct Start {
    WorkerId worker;
    int slot;
    Clock::time_point at;
  };

  void start_coordinator();
  void start_due();
  void greet();
  void hear(const nlohmann::json& message);
  void take_signals();
  void reap();
  void ended(WorkerId id, const net::ProcessEnd& end);
  /// Remembers how a worker has ended, and tells the coordinator.
  void tell_end(WorkerId id, const net::ProcessFailure& failure, bool was_dying = false);
  void check_end();
  void show_leader(WorkerId leader);
  std::optional<Deadline> next_event() const;

  AgentOptions options_;
  long memory_kills_;
  net::Children children_;
  Link link_;
  net::Children::Child* coordinator_ = nullptr;
  int coordinator_restarts_ = 0;
  Clock::time_point coordinator_started_{};
  std::map<WorkerId, Worker> workers_;
  std::vector<Start> starts_;
  std::map<WorkerId, net::ProcessFailure> failures_;  ///< how workers have ended
  std::deque<nlohmann::json> ends_;                   ///< told again after a reconnection
  WorkerId leader_ = -1;
  nlohmann::json finish_;  ///< what the coordinator said of the end; null before
  std::optional<Deadline> kill_at_;
  int stop_signal_ = 0;
  int killed_by_signal_ = 0;
};

}  // namespace yoke::elastic
