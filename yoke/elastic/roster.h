#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "yoke/elastic/budget.h"
#include "yoke/elastic/membership.h"

namespace yoke::elastic {

/// Numbers of a coordinator's clients. A worker's is given to it by the coordinator and never used
/// again; an agent's is its connection's.
using WorkerId = std::int64_t;
using AgentId = std::int64_t;

struct RosterOptions {
  int workers = 1;      ///< wanted
  int min_workers = 1;  ///< with fewer, training pauses
  int restarts = 3;     ///< as Budget's
  /// A worker that is silent for so long is declared dead; it stops acting before that by itself.
  Clock::duration lease = std::chrono::seconds(2);
  /// A section may take the longest stay so far times the factor, but at least the floor; before
  /// any stay was completed, `unknown`.
  double stuck_factor = 10;
  Clock::duration stuck_floor = std::chrono::seconds(10);
  Clock::duration stuck_unknown = std::chrono::minutes(10);
};

/// What a worker says a few times a second.
struct Beat {
  std::uint64_t generation = 0;
  std::int64_t step = -1;  ///< that it is in
  Section section = Section::kStart;
  Clock::duration in_section = {};
  std::array<Clock::duration, kSections> longest = {};  ///< completed stays since its last beat
};

/// What the coordinator must do.
struct StartWorker {
  AgentId agent;
  WorkerId worker;
  int slot;
  Clock::duration after;
};
struct KillWorker {
  WorkerId worker;
  std::string why;
};
struct AbortGeneration {
  std::uint64_t generation;
  std::vector<WorkerId> workers;
  std::string reason;
};
struct AskForChange {
  std::vector<WorkerId> workers;
};
struct Dismiss {
  WorkerId worker;
};
struct StopAll {
  std::vector<WorkerId> workers;
};
struct OpenGeneration {
  std::uint64_t generation;
  std::vector<WorkerId> members;  ///< by rank
  std::vector<Change> changes;
  Clock::time_point since;
  bool anyone_live;
  std::int64_t reached;
};
/// The run is over. Nobody is to be started; what still runs is to end.
struct Finish {
  int exit_code = 0;
  WorkerId worker = -1;    ///< the one that failed, if one did
  std::string cause = {};  ///< as events.jsonl has it
  std::string why = {};
};
using Action = std::variant<StartWorker, KillWorker, AbortGeneration, AskForChange, Dismiss,
                            StopAll, OpenGeneration, Finish>;

/// The decisions of a coordinator, without a socket or a clock: who is in which generation, who is
/// lost, what follows. Everything that happens is told to it with the time; it answers with what to
/// do. Not thread-safe.
///
/// A generation forms when all that are expected are ready, and at least min_workers. It breaks
/// when one of its workers ends, falls silent, is stuck, or reports that it cannot go on: then the
/// others are aborted, and those of them that live are expected next. Somebody who comes or goes
/// breaks nothing: all are asked to leave after the step in flight.
class Roster {
 public:
  using Now = Clock::time_point;
  explicit Roster(const RosterOptions& options, std::uint64_t generation = 0,
                  WorkerId next_worker = 0);

  // What happens:
  void agent_came(AgentId agent, int slots, Now now);
  void agent_left(AgentId agent, Now now);
  /// A process that an agent started, or has running after a coordinator's restart.
  void worker_started(WorkerId worker, AgentId agent, int slot, long pid, Now now);
  void worker_ended(WorkerId worker, const WorkerEnd& end, Now now);
  /// It has connected.
  void worker_came(WorkerId worker, std::uint64_t generation, Now now);
  void beat(WorkerId worker, const Beat& beat, Now now);
  void ready(WorkerId worker, std::uint64_t generation, const Standing& standing,
             const std::optional<Break>& why, Now now);
  /// It is about to end because of an exception in this step.
  void failed(WorkerId worker, std::int64_t step);
  void leaving(WorkerId worker, const std::string& cause, Now now);
  void done(WorkerId worker, bool finished);
  /// The changes that led to this generation are on file.
  void noted(std::uint64_t generation);
  void resize(int workers, Now now);
  /// This worker leaves for good, and one fewer is wanted.
  void resize_without(WorkerId worker, Now now);
  void stop();
  /// Time passes: call it at least every 100 ms.
  void tick(Now now);

  /// What to do about it, in order; empties the list.
  std::vector<Action> take_actions();

  /// For `yoke status`, the journal and tests.
  struct Worker {
    AgentId agent = -1;
    int slot = -1;
    long pid = 0;
    int rank = -1;  ///< in the generation that stands, or stood last; -1: in none
    enum class Phase : std::uint8_t { kStarting, kReady, kRunning, kDone } phase = Phase::kStarting;
    Standing standing;
    Beat beat;
    Now last_sign{};
    bool connected = false;
    std::int64_t failed_at = -1;  ///< the step in which it threw
    std::string leaving;          ///< the cause, if it goes
    std::string doomed;           ///< the cause, if it was declared dead and is being killed
  };
  const std::map<WorkerId, Worker>& workers() const { return workers_; }
  std::uint64_t generation() const { return generation_; }
  WorkerId next_worker() const { return next_worker_; }
  int wanted() const { return options_.workers; }
  std::int64_t reached() const { return reached_; }
  bool running() const { return state_ == State::kRunning; }
  bool over() const { return state_ == State::kOver; }
  const std::vector<Change>& last_changes() const { return last_changes_; }
  std::uint64_t refused() const { return refused_; }  ///< messages of lower generations
  /// After a restart: the members of the generation that stood, which are expected to come back.
  void recover(const std::vector<WorkerId>& members, int wanted, std::int64_t reached, Now now);

 private:
  enum class State : std::uint8_t { kGathering, kRunning, kOver };

  std::vector<WorkerId> running_members() const;
  void note(WorkerId worker, Change change, Now now);
  void break_generation(const std::string& reason, Now now);
  void lose(WorkerId worker, const std::string& detail, Now sign, Now now);
  void fill(Now now, Clock::duration after = {});
  int present() const;
  int free_slot() const;
  void ask_for_change();
  void form_if_complete(Now now);
  void finish(const Finish& finish);
  void finish_if_done();
  void check_silence(Now now);
  void check_stuck(Now now);
  void check_aborted(Now now);
  Clock::duration limit_of(Section section) const;
  AgentId agent_with_room() const;

  RosterOptions options_;
  Budget budget_;
  std::uint64_t generation_;
  WorkerId next_worker_;
  State state_ = State::kGathering;
  bool first_ = true;    ///< no generation of this job has stood yet
  bool broken_ = false;  ///< the generation that is gathered follows one that broke
  bool asked_ = false;   ///< the members know that a change is wanted
  bool stopping_ = false;
  bool some_done_ = false;      ///< a worker has said that the run is over
  bool some_finished_ = false;  ///< and that it is finished, not only stopped
  std::int64_t reached_ = -1;
  std::map<WorkerId, Worker> workers_;
  std::map<AgentId, int> agents_;                     ///< their slots
  std::vector<std::pair<WorkerId, Change>> changes_;  ///< of the generation that is gathered
  Now since_{};
  Now broken_at_{};
  std::int64_t opened_at_ = -1;  ///< the step at which the generation began
  std::vector<Change> last_changes_;
  std::vector<Change> unnoted_;  ///< told again with the next generation
  std::array<Clock::duration, kSections> longest_{};
  Now last_tick_{};
  std::uint64_t refused_ = 0;
  std::vector<Action> actions_;
};

}  // namespace yoke::elastic
