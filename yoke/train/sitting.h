#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "yoke/base/fault.h"
#include "yoke/base/file_identity.h"
#include "yoke/comm/communicator.h"
#include "yoke/train/evaluator.h"
#include "yoke/train/job.h"
#include "yoke/train/recorder.h"
#include "yoke/train/run.h"
#include "yoke/train/state.h"
#include "yoke/train/step.h"

namespace yoke::train {

/// One rank's part in one sitting of a run: from the newest checkpoint (or the start) to the end of
/// the run, or to a stop.
class Sitting {
 public:
  /// Collective: joins the others, compares fingerprints, builds the job, restores the state.
  Sitting(const RunConfig& config, const World& world, const RunOptions& options,
          const model::Registry& registry);
  /// Collective. Steps until the end or a stop; returns what report.json says.
  RunReport run();

 private:
  void restore_newest();
  bool between_evaluations() const;  ///< the state that was just reached
  void evaluate();
  void save();
  void write_checkpoint();
  void require_folder() const;
  void show(const StepReport& report, const std::map<std::string, double>& evaluated,
            Progress& progress);
  RunReport report(const std::string& status);
  nlohmann::json gather_traffic();

  bool leads() const { return world_.rank() == 0; }
  bool at_end() const { return progression_.step == job_.total_steps; }

  RunConfig config_;
  World world_;
  RunOptions options_;
  FaultPlan faults_;
  std::unique_ptr<comm::Communicator> communicator_;
  Job job_;
  bool same_bits_ = true;
  sync::GradientSync gradients_;
  sync::FlatState state_;
  Progression progression_;
  std::optional<Evaluator> evaluator_;
  std::unique_ptr<Recorder> recorder_;  ///< rank 0's

  std::optional<FileIdentity> folder_;  ///< the run's, when the sitting began
  std::int64_t first_step_ = 0;
  std::int64_t saved_step_ = -1;
  std::int64_t samples_ = 0;
  Clock::time_point started_;
  std::map<std::string, double> evaluation_;  ///< the newest
  std::optional<double> loss_;                ///< of the newest step
};

}  // namespace yoke::train
