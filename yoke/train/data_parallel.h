#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "yoke/base/clock.h"
#include "yoke/comm/communicator.h"
#include "yoke/data/sampler.h"
#include "yoke/net/world.h"
#include "yoke/sync/gradient_sync.h"

namespace yoke {

/// One micro-batch that this rank computes.
class MicroBatch {
 public:
  std::int64_t step() const { return step_; }
  std::int64_t index() const { return index_; }  ///< in the global batch
  /// The samples, as indices of the data set; never empty.
  const std::vector<std::int64_t>& indices() const { return indices_; }
  std::int64_t size() const { return static_cast<std::int64_t>(indices_.size()); }

 private:
  friend class DataParallel;
  std::int64_t step_ = 0, index_ = 0;
  std::vector<std::int64_t> indices_;
};

/// Makes an ordinary libtorch loop data parallel: the user's own module, data and torch::optim
/// optimizer, the same weights, bit for bit, for any number of ranks.
///
///     auto world = yoke::World::from_environment();
///     yoke::DataParallel trainer(*model, optimizer, world, {.global_batch = 512, .micro_batch =
///     64}); for (int epoch = 0; epoch < 10; ++epoch)
///       for (auto& micro : trainer.epoch(dataset_size)) {
///         auto [input, target] = load(micro.indices());
///         trainer.backward(loss(model->forward(input), target));
///       }
///
/// One iteration is one micro-batch of this rank. yoke draws the samples, seeds libtorch's
/// generator anew before each micro-batch (so torch::nn::Dropout gives the same on any rank), gives
/// the module the buffers of the step, and calls the optimizer when the global batch is complete;
/// it owns zero_grad and step: do not call them. A rank without a micro-batch in a step takes part
/// in it inside the loop. Every rank makes the same calls with the same arguments, and gets all the
/// samples of the data set addressed by index. Collective errors (PeerLost, Timeout ...) as in
/// comm/communicator.h; not thread-safe.
class DataParallel {
 public:
  struct Options {
    std::int64_t global_batch = 0;  ///< samples; required
    std::int64_t micro_batch = 0;   ///< samples; 0: an eighth of the global batch
    std::int64_t leaf = 1;          ///< micro-batches of a leaf
    std::uint64_t seed = 0;         ///< of the order of samples and of libtorch's generator
    bool shuffle = true;
    bool drop_last = false;
    double clip_norm = 0.0;  ///< largest global norm of the gradient; 0: no clipping
    bool mixed = false;      ///< let ranks join that would compute other bits; the promise is off
    std::size_t bucket_bytes = 4 << 20;
    comm::TransportKind transport = comm::TransportKind::kAuto;
    comm::Topology topology = comm::Topology::kAuto;
    Clock::duration timeout = std::chrono::seconds(60);
  };

  /// Collective. Ranks compare what their bits depend on (build, processor, threads inside an
  /// operation, options): JoinRefused names both sides of a difference, unless `mixed`. Parameters
  /// and buffers become those of rank 0. `module` and `optimizer` must outlive this object. Throws
  /// ConfigError for what cannot be right: L-BFGS (it evaluates the model several times a step), an
  /// optimizer of parameters that the module does not have, options out of range, a module with
  /// dropout when ranks are threads.
  DataParallel(torch::nn::Module& module, torch::optim::Optimizer& optimizer, const World& world,
               const Options& options);

  /// The micro-batches of this rank in the next epoch over `samples` samples, as a range for a for
  /// loop; begins where the last one was left. `samples` is the same in every epoch.
  class Epoch;
  Epoch epoch(std::int64_t samples);

  /// Backward of the loss of the current micro-batch: a mean over it. `weight`: what it is a mean
  /// over, if that is not the number of samples (tokens). After the last micro-batch of this rank
  /// in a step the gradients of all ranks are added and the optimizer is called. Throws DataError
  /// if the gradient is not finite.
  void backward(const torch::Tensor& loss, std::int64_t weight = 0);

  std::int64_t step() const { return step_; }     ///< global batches that are complete
  double loss() const { return loss_; }           ///< mean over the last one, of all ranks
  double gradient_norm() const { return norm_; }  ///< of the last one, before clipping
  /// SHA-256 over the parameters (design, "Fixed names"): equal on all ranks, and for any number of
  /// them.
  std::string parameters_sha256() const;
  comm::Communicator& communicator() { return *communicator_; }

 private:
  bool next(MicroBatch& micro);
  void finish_step();

  torch::optim::Optimizer& optimizer_;
  Options options_;
  std::unique_ptr<comm::Communicator> communicator_;
  std::unique_ptr<sync::GradientSync> gradients_;
  torch::nn::Module& module_;
  std::unique_ptr<data::GlobalSampler> sampler_;
  std::int64_t samples_ = 0;
  std::int64_t step_ = 0;
  std::int64_t epoch_end_ = 0;  ///< step at which the current epoch ends
  bool in_step_ = false;
  std::size_t given_ = 0;  ///< micro-batches of this step that the loop has been given
  bool awaits_backward_ = false;
  std::int64_t current_size_ = 0;
  double loss_ = 0;
  double norm_ = 0;
};

/// A single-pass range of MicroBatch.
class DataParallel::Epoch {
 public:
  class Iterator {
   public:
    MicroBatch& operator*() const { return epoch_->current_; }
    Iterator& operator++() {
      epoch_->more_ = epoch_->trainer_.next(epoch_->current_);
      return *this;
    }
    bool operator!=(std::nullptr_t) const { return epoch_->more_; }

   private:
    friend class Epoch;
    explicit Iterator(Epoch* epoch) : epoch_(epoch) {}
    Epoch* epoch_;
  };
  Iterator begin() {
    more_ = trainer_.next(current_);
    return Iterator(this);
  }
  std::nullptr_t end() const { return nullptr; }

 private:
  friend class DataParallel;
  explicit Epoch(DataParallel& trainer) : trainer_(trainer) {}
  DataParallel& trainer_;
  MicroBatch current_;
  bool more_ = false;
};

}  // namespace yoke
