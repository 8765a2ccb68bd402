#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "yoke/base/fault.h"
#include "yoke/comm/communicator.h"
#include "yoke/data/dataset.h"
#include "yoke/model/layer_list.h"
#include "yoke/net/world.h"
#include "yoke/optim/optimizer.h"
#include "yoke/sync/flat_state.h"
#include "yoke/sync/gradient_sync.h"

namespace yoke::bench {

/// What a step computes: micro-batches of `samples` each, of a network by name.
struct StepOptions {
  std::string network;
  std::int64_t micro_batches = 1;  ///< of the global batch
  std::int64_t samples = 1;        ///< of a micro-batch
  std::int64_t leaf = 1;
  optim::OptimizerOptions optimizer{.name = "adamw", .lr = 1e-4};
  comm::TransportKind transport = comm::TransportKind::kSharedMemory;
  comm::Topology topology = comm::Topology::kAuto;
};

/// A step that nobody is asked to share: forward, backward, accumulation in `.grad`, and an update
/// by yoke's optimizer of each parameter where it lies. `micro_batches` are those of this rank.
std::function<void()> plain_step(const StepOptions& options);

/// yoke's step, as train::run takes it: all ranks together compute `micro_batches`.
class YokeStep {
 public:
  /// Collective.
  YokeStep(const World& world, const StepOptions& options);
  void operator()();
  /// The update alone, once more with the gradient of the last step. Collective.
  void update();
  comm::Communicator& communicator() { return *communicator_; }

 private:
  StepOptions options_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::shared_ptr<model::LayerList> model_;
  std::unique_ptr<sync::GradientSync> gradients_;
  std::unique_ptr<sync::FlatState> state_;
  std::vector<data::Batch> batches_;  ///< of this rank
  FaultPlan faults_;
  std::int64_t step_ = 0;
};

/// The median time of `steps` calls, in milliseconds; `before` each of them is not counted.
double milliseconds(int steps, const std::function<void()>& step,
                    const std::function<void()>& before = {});

}  // namespace yoke::bench
