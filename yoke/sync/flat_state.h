#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "yoke/base/fault.h"
#include "yoke/comm/communicator.h"
#include "yoke/optim/optimizer.h"
#include "yoke/sync/gradient_sync.h"
#include "yoke/tensor/named_hash.h"
#include "yoke/tensor/state_arena.h"

namespace yoke::sync {

/// Parameters and optimizer state on flat memory, updated by yoke's own optimizers. On one host
/// there is one state for all ranks, in shared memory, and every slice of it is updated by its one
/// writer; over a network each rank has a copy and updates all of it. The module's parameters are
/// rebound to this memory: do not use the module after the FlatState.
class FlatState {
 public:
  /// Collective. Parameters become those of rank 0.
  FlatState(GradientSync& gradients, comm::Communicator& communicator,
            std::unique_ptr<optim::Optimizer> optimizer);
  ~FlatState();
  FlatState(const FlatState&) = delete;
  FlatState& operator=(const FlatState&) = delete;

  /// Collective, after GradientSync::finish: turns S_k into S_{k+1}. A parameter without a gradient
  /// on any rank is left alone, its count of updates too.
  void update(std::int64_t step, double lr, double scale, FaultPlan& faults);

  /// The logical tensors of this state, views of its memory: stable between two updates.
  tensor::NamedTensors parameters() const;
  /// "parameter/slot", and "parameter/step", the count of updates.
  tensor::NamedTensors optimizer() const;

  /// Collective: fills the state from `load(name, bytes)`, called for each of the names above on
  /// one rank a memory, and marks it as S_{step}.
  void restore(std::int64_t step,
               const std::function<void(const std::string&, std::span<std::byte>)>& load);

  const tensor::StateArena& arena() const { return *arena_; }
  bool shared() const { return shared_ != nullptr; }

 private:
  void make_chunk(tensor::ByteRange chunk, std::byte* const* fresh, double lr, double scale);

  GradientSync& gradients_;
  comm::Communicator& communicator_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<NamedTensor> parameters_;  ///< in the order of the arena
  std::shared_ptr<comm::SharedSections> shared_;
  std::span<std::byte> private_;
  std::unique_ptr<tensor::StateArena> arena_;
  std::vector<std::int64_t> updates_;  ///< by trainable parameter; equal on all ranks
};

}  // namespace yoke::sync
