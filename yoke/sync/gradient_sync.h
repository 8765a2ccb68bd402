#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
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
/// rank without micro-batches calls begin_step and finish. Collective errors as in
/// comm/communicator.h; ConfigError for sparse gradients.
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

  void begin_step(std::int64_t step, std::int64_t micro_batches);
  struct Range {
    std::int64_t first = 0, count = 0;
  };
  /// Of the step that was begun.
  Range my_micro_batches() const;
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
  comm::BlockPlan plan_;
  LeafSchedule schedule_;
  std::int64_t current_ = -1;  ///< micro-batch between begin_micro_batch and backward
  bool collecting_ = false;    ///< backward is running
  std::int64_t done_ = 0;      ///< micro-batches of this rank that are computed
  bool gathered_ = false;      ///< the summary of the step is there
  bool completed_ = false;     ///< and its norm is known, and the buffers have advanced
  Outcome outcome_;
};

}  // namespace yoke::sync
