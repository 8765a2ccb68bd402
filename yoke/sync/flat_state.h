#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
///
/// It outlives the group of ranks that works on it: attach() takes it to the next generation.
class FlatState {
 public:
  /// Where the first values come from.
  enum class Origin {
    kInitial,  ///< parameters are those of rank 0's module, the rest is zero
    kKept,     ///< the shared memory holds a state already, or it will be received (memory())
  };

  /// Collective. `host_memory`: where ranks of one host keep their state, of memory_needed() bytes;
  /// empty: in memory of the communicator's group, which does not outlive all of its ranks.
  FlatState(GradientSync& gradients, comm::Communicator& communicator,
            std::unique_ptr<optim::Optimizer> optimizer, std::span<std::byte> host_memory = {},
            Origin origin = Origin::kInitial);
  ~FlatState();
  FlatState(const FlatState&) = delete;
  FlatState& operator=(const FlatState&) = delete;

  /// Collective, after GradientSync::finish: turns S_k into S_{k+1}. A parameter without a gradient
  /// on any rank is left alone, its count of updates too. `written` is called when this rank's part
  /// is written, before any rank takes the state for whole.
  void update(std::int64_t step, double lr, double scale, FaultPlan& faults,
              const std::function<void()>& written = {});

  /// Collective: the ranks of another generation go on with the state that each has.
  void attach(GradientSync& gradients, comm::Communicator& communicator,
              Origin origin = Origin::kKept);
  static std::size_t memory_needed(const GradientSync& gradients,
                                   const optim::Optimizer& optimizer);
  /// Whether `memory` holds a whole state of this model and optimizer, and which: the k of S_k.
  static std::optional<std::int64_t> state_in(std::span<std::byte> memory,
                                              const GradientSync& gradients,
                                              const optim::Optimizer& optimizer);

  /// After update() of `step` was broken off, where ranks share memory and none acts any more:
  /// what of it this rank keeps for itself becomes that of S_{step+1}. Not collective; a second
  /// call changes nothing.
  void count_updates(std::int64_t step);
  /// Then one rank that had gathered the step completes what the others, dead ones too, have left
  /// of their slices, with the arguments of update().
  void complete_update(std::int64_t step, double lr, double scale);
  /// Then each rank, after a barrier, says that the state is whole.
  void end_update(std::int64_t step) { arena_->end_update(step + 1); }

  /// Parameters and slots, in one piece: what a rank without shared memory sends to one that lacks
  /// the state.
  std::span<std::byte> memory() const;
  /// How often each parameter was updated: the part of the optimizer's state that every rank keeps
  /// for itself.
  std::span<const std::int64_t> update_counts() const { return updates_; }
  /// Those of S_{step}, as another rank has them.
  void set_update_counts(std::span<const std::byte> counts, std::int64_t step);

  /// The logical tensors of this state, views of its memory: stable between two updates.
  tensor::NamedTensors parameters() const;
  /// "parameter/slot", and "parameter/step", the count of updates.
  tensor::NamedTensors optimizer() const;

  /// Collective: fills the state from `load(name, bytes)`, called for each of the names above on
  /// one rank a memory, and marks it as S_{step}.
  void restore(std::int64_t step,
               const std::function<void(const std::string&, std::span<std::byte>)>& load);

  const tensor::StateArena& arena() const { return *arena_; }
  bool shared() const { return is_shared_; }

 private:
  void make_chunk(tensor::ByteRange chunk, std::byte* const* fresh, double lr, double scale);

  void fill(bool makes_it, Origin origin);

  GradientSync* gradients_;
  comm::Communicator* communicator_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::vector<NamedTensor> parameters_;  ///< in the order of the arena
  bool is_shared_ = false;
  std::shared_ptr<comm::SharedSections> sections_;  ///< where there is no memory of the host
  std::span<std::byte> private_;
  std::unique_ptr<tensor::StateArena> arena_;
  std::vector<std::int64_t> updates_;  ///< by trainable parameter; equal on all ranks
  std::int64_t counted_ = -1;          ///< the step whose update they count
};

}  // namespace yoke::sync
