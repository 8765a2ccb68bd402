#pragma once

#include <memory>
#include <vector>

#include "yoke/elastic/placement/leaf_draws.h"
#include "yoke/elastic/placement/policy.h"
#include "yoke/elastic/placement/speed_meter.h"
#include "yoke/sync/summary.h"
#include "yoke/train/run_config.h"

namespace yoke::train {

/// Which worker computes which leaves in the steps of one generation: elastic.placement. What it
/// knows of the workers it has from what all of them were told, so all place alike.
class Placing {
 public:
  /// `most_leaves`: of any step.
  Placing(const RunConfig& config, std::int64_t most_leaves, int workers);

  /// Before the step, or while it runs.
  bool in_step() const { return policy_ == nullptr; }
  int most_blocks() const;

  comm::BlockPlan plan(std::int64_t leaves, std::int64_t step) const;
  /// in_step() only. Collective at the first call.
  elastic::LeafDraws& draws() { return *draws_; }
  /// Collective.
  void open(const World& world, comm::Communicator& communicator);

  /// What the workers did in a step: who computed which leaf, and how long each took.
  void note(const std::vector<sync::Summary::Result>& results, std::int64_t leaf,
            const std::vector<double>& seconds);

 private:
  std::vector<elastic::Worker> workers(std::int64_t leaves, std::int64_t step) const;

  std::unique_ptr<elastic::PlacementPolicy> policy_;  ///< null: in the step
  std::unique_ptr<elastic::LeafDraws> draws_;
  std::vector<double> weights_;
  elastic::SpeedMeter meter_;
  std::vector<double> usual_;  ///< leaves of each worker, averaged
  std::int64_t most_leaves_;
  int workers_;
  Clock::duration timeout_;
};

}  // namespace yoke::train
