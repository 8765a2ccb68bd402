#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "yoke/base/fault.h"
#include "yoke/comm/communicator.h"
#include "yoke/model/layer_list.h"
#include "yoke/sync/buffer_sync.h"
#include "yoke/sync/exchange.h"
#include "yoke/sync/gradient_folder.h"
#include "yoke/sync/summary.h"

namespace yoke::sync {

struct GradientSyncOptions {
  std::size_t bucket_bytes = 4 << 20;
  comm::Topology topology = comm::Topology::kAuto;
  std::int64_t most_micro_batches = 1;  ///< of any step
  std::int64_t leaf = 1;                ///< micro-batches of a leaf
  /// The most blocks that a rank holds in any step; 0: as many as even placement needs. Each is an
  /// arena of its own, which costs memory when it is written first.
  int most_blocks = 0;
  std::int64_t most_checks = 0;  ///< leaves of a rank in a step that are compared
};

/// The leaf-to-rank plans of all steps: only steps with another number of leaves differ.
int most_blocks(const GradientSyncOptions& options, int ranks);

/// Turns the gradients of micro-batches, computed on any rank, into the one mean gradient of a
/// global batch, in the canonical order (design, section 2): hooks take each gradient as soon as it
/// is final, the folder adds this rank's leaves, the exchange adds those of all ranks.
///
/// A parameter that stands in n entries of a layer list (tied weights) has n accumulators, whose
/// totals are added after the tree (design, section 2.5).
///
/// A step: begin_step; for each of my micro-batches begin_micro_batch, forward, backward; finish. A
/// rank without micro-batches calls begin_step and finish. Where it turns out in the step who
/// computes what: begin_open_step; for each block that this rank draws begin_block, then
/// begin_micro_batch, forward, backward for each of its micro-batches, then keep_block (or
/// drop_block, at any time, if another has it); finish. Collective errors as in
/// comm/communicator.h; ConfigError for sparse gradients.
///
/// Leaves may be compared: watch_leaf() for those that this rank computes, begin_check() for one
/// that it computes only to be compared; checks() has what all ranks said.
class GradientSync {
 public:
  /// Collective. Installs hooks on the module's parameters, which stay until destruction. Does not
  /// touch the parameters' values. Buffers become those of rank 0.
  GradientSync(torch::nn::Module& module, comm::Communicator& communicator,
               const GradientSyncOptions& options);
  ~GradientSync();
  GradientSync(const GradientSync&) = delete;
  GradientSync& operator=(const GradientSync&) = delete;

  const ModelTensors& tensors() const { return tensors_; }
  const tensor::ArenaLayout& layout() const { return layout_; }
  BufferSync& buffers() { return buffers_; }
  const BufferSync& buffers() const { return buffers_; }
  Exchange& exchange() { return *exchange_; }

  std::int64_t leaves_of(std::int64_t micro_batches) const;
  void begin_step(std::int64_t step, std::int64_t micro_batches);
  /// `plan`: who computes which of leaves_of(micro_batches); the same on all ranks.
  void begin_step(std::int64_t step, std::int64_t micro_batches, const comm::BlockPlan& plan);
  void begin_open_step(std::int64_t step, std::int64_t micro_batches);
  /// Of the step that was begun (in an open one, of its blocks so far), in the order in which they
  /// are computed.
  std::span<const std::int64_t> my_micro_batches() const { return mine_; }

  /// Open steps. The block's micro-batches; none may be left of the block before.
  std::span<const std::int64_t> begin_block(int level, std::int64_t index);
  void keep_block();
  void drop_block();

  /// This leaf is compared if this rank computes it in this step.
  void watch_leaf(std::int64_t leaf) { watched_.insert(leaf); }
  /// After all micro-batches of this rank's own: a leaf for comparison only. Its micro-batches,
  /// which follow as if they were of this rank.
  std::span<const std::int64_t> begin_check(std::int64_t leaf);
  /// A hash of what the current micro-batch is computed from, for a leaf that is compared.
  void note_input(std::uint64_t hash);
  bool compares() const { return check_.has_value(); }  ///< the current leaf

  /// Gives the module the buffers of S_k.
  void begin_micro_batch(std::int64_t micro_batch);
  /// Runs backward of `loss`, a scalar, the mean over the micro-batch, times `weight` (its samples
  /// or tokens, > 0).
  void backward(const at::Tensor& loss, std::int64_t weight);

  struct Outcome {
    std::int64_t weight = 0;  ///< samples or tokens of the global batch
    double loss = 0;          ///< their mean loss, added in the tree
    double norm = 0;          ///< of the mean gradient
    Wishes wishes;            ///< of all ranks
    const std::vector<Summary::Result>* results =
        nullptr;  ///< who computed what; until the next finish
  };
  /// Collective. Afterwards the mean gradient lies in exchange().reduced() (all of it may be read
  /// by all ranks), and the module has the buffers of S_{k+1}. Throws DataError on every rank,
  /// before anything is changed, if the gradient is not finite or integer buffers differ between
  /// ranks; ConfigError if a micro-batch of this rank had no backward (the others wait until their
  /// deadline).
  Outcome finish(const Wishes& mine, FaultPlan& faults);
  /// The two halves of finish(): the first hears from all, the second may change the module's
  /// buffers. Between them a step may be begun again.
  void gather(const Wishes& mine, FaultPlan& faults);
  Outcome reduce(FaultPlan& faults);
  /// After gather(): all that ranks said of leaves that were compared.
  const std::vector<Summary::Check>& checks() const { return summary_.checks(); }
  /// After gather(): what it took each rank to compute, as it said by set_seconds.
  const std::vector<double>& seconds() const { return summary_.seconds(); }
  void set_seconds(double seconds) { summary_.set_seconds(seconds); }
  /// After finish() of `step` was broken off, where ranks share memory: whether this one had heard
  /// from all by then. Some rank may have begun its update, and this one can help to complete it.
  bool has_gathered(std::int64_t step) const { return step_ == step && gathered_; }
  /// Of the step that finish() was broken off in, when every rank had left reduce(): what finish()
  /// would have returned, and the buffers of S_{k+1}. Not collective. A second call changes
  /// nothing.
  Outcome complete();
  /// Whether the parameter had a gradient on any rank in the step that was finished.
  bool present(std::size_t parameter) const;

 private:
  class Hook;
  void on_gradient(std::size_t parameter, const at::Tensor& tensor);
  std::vector<AddedTensor> tied_uses() const;
  void begin(std::int64_t step, std::int64_t micro_batches);
  std::span<const std::int64_t> schedule_micro_batches(std::size_t first_leaf);
  bool last_of_leaf() const;

  comm::Communicator& communicator_;
  GradientSyncOptions options_;
  ModelTensors tensors_;
  model::LayerList* list_;  ///< the module, if it is one with tied weights
  tensor::ArenaLayout layout_;
  BufferSync buffers_;
  std::unique_ptr<Exchange> exchange_;
  GradientFolder folder_;
  Summary summary_;

  std::int64_t step_ = -1;
  std::int64_t micro_batches_ = 0;
  bool open_ = false;
  comm::BlockPlan plan_;  ///< even, of the newest number of leaves
  LeafSchedule schedule_;
  std::vector<std::int64_t> mine_;   ///< micro-batches of schedule_
  std::optional<comm::Block> block_;  ///< that is being computed, in an open step
  int held_ = 0;                      ///< blocks of an open step
  std::int64_t current_ = -1;         ///< micro-batch between begin_micro_batch and backward
  std::size_t leaf_ = 0;              ///< place in schedule_ of the leaf of `current_`, or the next
  std::size_t own_leaves_ = 0;        ///< of schedule_; checks follow
  bool collecting_ = false;           ///< backward is running
  std::size_t done_ = 0;              ///< of mine_
  std::set<std::int64_t> watched_;    ///< leaves
  std::optional<LeafCheck> check_;    ///< of the leaf in progress, if it is compared
  LeafHash hash_;                     ///< of the same
  bool gathered_ = false;             ///< the summary of the step is there
  bool completed_ = false;            ///< and its norm is known, and the buffers have advanced
  Outcome outcome_;
};

}  // namespace yoke::sync
