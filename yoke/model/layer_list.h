#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "yoke/base/random.h"
#include "yoke/model/segment.h"

namespace yoke::model {

/// What a forward pass knows besides its input: the randomness of one micro-batch, and whether it
/// trains.
struct StepContext {
  /// Keyed by (seed, step, micro-batch). Evaluation has its own.
  RandomKey key{0};
  bool training = true;
};

/// One entry of a layer list. Its random numbers come from `context.key.with(path())` alone.
class Layer : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& input, const StepContext& context) = 0;
  /// True if forward() draws from libtorch's process generator (torch::nn::Dropout ...). The list
  /// then seeds that generator anew before this layer; refused when ranks are threads.
  virtual bool uses_process_generator() const { return false; }
  /// Draws the initial values of its parameters from `key`, which is made of the seed and the
  /// layer's name (see initial_weights.h). Layers that bring their weights with them leave them as
  /// they are.
  virtual void initialize(const RandomKey& /*key*/) {}
  /// "layers.3": set when the layer joins a list.
  const std::string& path() const { return path_; }

 private:
  friend class LayerList;
  std::string path_;
};

/// A model as a list of layers with contiguous tensors between them. Parameters are named
/// "<layer>.<parameter>". Not thread-safe: a rank that is a thread has its own list.
class LayerList : public torch::nn::Module {
 public:
  /// `name` is the layer's part of parameter names. A layer that is in the list already is called
  /// once more, with the same parameters under their first name, and with random numbers of its
  /// own. Returns *this.
  LayerList& add(const std::string& name, std::shared_ptr<Layer> layer);
  /// In the order of calls; a layer that was added twice is there twice.
  const std::vector<std::shared_ptr<Layer>>& layers() const { return layers_; }

  /// A floating-point input is converted to the type of the first parameter.
  torch::Tensor forward(torch::Tensor input, const StepContext& context);

  /// A parameter that stands in several entries: of a layer that was added twice, or one tensor
  /// that two layers have registered.
  struct Tied {
    torch::Tensor parameter;
    std::vector<std::size_t> entries;  ///< of layers(), ascending, at least two
  };
  std::vector<Tied> tied() const;
  /// While on, entries with a tied parameter are differentiated one by one, from the last to the
  /// first, so that hooks see the gradient of each use, not their sum; differentiating() is then
  /// the entry that a hook fires for. Other entries, and lists without tied parameters, are not
  /// touched.
  void separate_uses(bool on);
  std::optional<std::size_t> differentiating() const { return *differentiating_; }

  bool uses_process_generator() const;
  /// Draws all initial weights, keyed by (seed, layer name, parameter name, element).
  void initialize(std::uint64_t seed);

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
  std::vector<std::uint64_t> calls_;  ///< for each entry, how many before it are the same layer
  std::vector<bool> separate_;        ///< entries that are differentiated by themselves
  Differentiating differentiating_ = std::make_shared<std::optional<std::size_t>>();
};

/// Any torch::nn::Module with forward(Tensor) as a layer, for a user's own model: a list of one.
/// The process generator is seeded anew before each micro-batch, and the module is told whether it
/// trains.
template <typename Network>
class ModuleLayer : public Layer {
 public:
  explicit ModuleLayer(std::shared_ptr<Network> module)
      : module_(register_module("module", std::move(module))) {}
  torch::Tensor forward(const torch::Tensor& input, const StepContext& context) override {
    if (module_->is_training() != context.training) module_->train(context.training);
    return module_->forward(input);
  }
  bool uses_process_generator() const override { return true; }

 private:
  std::shared_ptr<Network> module_;
};

}  // namespace yoke::model
