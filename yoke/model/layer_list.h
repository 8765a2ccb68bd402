#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "yoke/base/random.h"

namespace yoke::model {

/// What a forward pass knows besides its input: the randomness of one micro-batch, and whether it trains.
struct StepContext {
  /// Keyed by (seed, step, micro-batch). Evaluation has its own.
  RandomKey key{0};
  bool training = true;
};

/// One entry of a layer list. Its random numbers come from `context.key.with(path)` alone.
class Layer : public torch::nn::Module {
 public:
  virtual torch::Tensor forward(const torch::Tensor& input, const StepContext& context) = 0;
  /// True if forward() draws from libtorch's process generator (torch::nn::Dropout ...). The list then seeds that
  /// generator anew before this layer; refused when ranks are threads.
  virtual bool uses_process_generator() const { return false; }
  /// "layers.3": set when the layer joins a list.
  const std::string& path() const { return path_; }

 private:
  friend class LayerList;
  std::string path_;
};

/// A model as a list of layers with contiguous tensors between them. Parameters are named "<layer>.<parameter>".
class LayerList : public torch::nn::Module {
 public:
  /// `name` is the layer's part of parameter names. Returns *this.
  LayerList& add(const std::string& name, std::shared_ptr<Layer> layer);
  const std::vector<std::shared_ptr<Layer>>& layers() const { return layers_; }

  torch::Tensor forward(torch::Tensor input, const StepContext& context);
  bool uses_process_generator() const;

 private:
  std::vector<std::shared_ptr<Layer>> layers_;
};

/// Any torch::nn::Module with forward(Tensor) as a layer, for a user's own model: a list of one. The process generator
/// is seeded anew before each micro-batch.
template <typename Module>
class ModuleLayer : public Layer {
 public:
  explicit ModuleLayer(std::shared_ptr<Module> module) : module_(register_module("module", std::move(module))) {}
  torch::Tensor forward(const torch::Tensor& input, const StepContext&) override { return module_->forward(input); }
  bool uses_process_generator() const override { return true; }

 private:
  std::shared_ptr<Module> module_;
};

/// Draws initial weights keyed by (seed, parameter name, element): the same for any number of ranks, and for any other
/// parameter that comes or goes. Linear, convolution: Kaiming-uniform with a = sqrt(5), as torch's default (bound
/// 1/sqrt(fan_in), biases too); embedding and gpt's linears: normal with the standard deviation given.
/// Implemented by each layer through these two.
void fill_uniform(torch::Tensor& parameter, const RandomKey& key, double bound);
void fill_normal(torch::Tensor& parameter, const RandomKey& key, double deviation);

}  // namespace yoke::model
