#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "yoke/base/fault.h"
#include "yoke/base/file_identity.h"
#include "yoke/checkpoint/recovery.h"
#include "yoke/elastic/membership.h"
#include "yoke/net/shm/region.h"
#include "yoke/tensor/twin_slots.h"
#include "yoke/train/evaluator.h"
#include "yoke/train/job.h"
#include "yoke/train/recorder.h"
#include "yoke/train/remains.h"
#include "yoke/train/run.h"
#include "yoke/train/state.h"
#include "yoke/train/step.h"
#include "yoke/train/team.h"

namespace yoke::train {

/// One worker's part in one sitting of a run: from the newest state there is to the end of the run,
/// or to a stop, through as many generations as it takes.
///
/// A generation: enter (meet the others; complete, find and share out the newest state), then steps
/// until the end or until somebody comes or goes. Where it breaks, the worker keeps what it holds
/// and is ready for the next one. sitting_state.cc has the part about the state.
class Sitting {
 public:
  /// Builds the job; meets nobody.
  Sitting(const RunConfig& config, elastic::Membership& membership, const RunOptions& options,
          const model::Registry& registry);
  ~Sitting();
  Sitting(const Sitting&) = delete;
  Sitting& operator=(const Sitting&) = delete;

  /// Returns what report.json says.
  RunReport run();

 private:
  // One generation; all of these are collective, and throw CommunicationError when it breaks.
  void enter(const elastic::View& view);
  void open_records(const elastic::View& view);
  /// Nothing: somebody comes or goes.
  std::optional<RunReport> train();
  void step();
  /// What is due after the step that made the state that stands: evaluation, lines, checkpoint.
  void finish_step();
  void evaluate();
  void save();
  RunReport conclude();

  // The state at the beginning of a generation (sitting_state.cc), in this order.
  elastic::Standing standing() const;
  void complete_broken_step(Team& next);
  /// The k of the S_k that each rank holds, or -1. A worker that is behind forgets what it holds:
  /// its buffers become those of rank 0 next.
  std::vector<std::int64_t> compare_steps(Team& next);
  void find_state(const elastic::View& view, std::span<const std::int64_t> steps);
  void share_state(int source, std::span<const std::int64_t> steps);
  void hold_state(sync::FlatState::Origin origin);
  bool take_host_memory();
  void start_from_files(const elastic::View& view);
  void map_host_memory();
  void keep_remains();
  Remains remains();

  void write_checkpoint();
  void require_folder() const;
  bool between_evaluations() const;  ///< the state that was just reached
  sync::Wishes wishes();
  void note_changes();
  void show(const std::map<std::string, double>& evaluated);
  StepContext context();
  void keep_traffic();
  nlohmann::json gather_traffic();

  bool leads() const { return team_->world().rank() == 0; }
  bool at_end() const { return progression_.step == job_.total_steps; }

  RunConfig config_;
  elastic::Membership& membership_;
  RunOptions options_;
  Job job_;
  tensor::Fingerprint fingerprint_;
  std::optional<Evaluator> evaluator_;
  std::optional<FileIdentity> folder_;  ///< the run's, when the sitting began

  std::unique_ptr<Team> team_;  ///< of the generation that stands, or stood last
  FaultPlan faults_;
  std::shared_ptr<net::SharedRegion> host_;  ///< where the state lies, if the host keeps memory
  std::optional<tensor::TwinSlots> twins_;   ///< behind it
  std::unique_ptr<sync::FlatState> state_;
  bool live_ = false;  ///< all of S_k is here
  Progression progression_;
  StepRecord record_;  ///< of the step that made S_k, if that was done in this sitting
  Remains::Marks marks_;
  checkpoint::Search recovered_;  ///< rank 0's, of this generation

  std::unique_ptr<Recorder> recorder_;  ///< rank 0's
  std::unique_ptr<Progress> progress_;
  std::string source_;                    ///< of the state of this generation
  std::vector<elastic::Change> changes_;  ///< that led to it, and are not in events.jsonl yet
  Clock::time_point changed_;
  bool first_generation_ = true;
  bool has_left_ = false;  ///< this worker has said that it wants to go
  std::int64_t samples_ = 0;
  Clock::time_point started_;
  std::map<std::string, double> evaluation_;  ///< the newest
  std::optional<double> loss_;                ///< of the newest step
  std::vector<comm::TrafficLine> traffic_;    ///< of generations that are over
};

}  // namespace yoke::train
