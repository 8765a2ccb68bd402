#pragma once

#include "yoke/model/layer_list.h"

namespace yoke::model {

/// y = activation(x W^T + b) over the last dimension; parameters "weight" [out, in] and "bias"
/// [out].
class Linear final : public Layer {
 public:
  enum class Activation { kNone, kRelu };
  Linear(std::int64_t in, std::int64_t out, Activation activation = Activation::kNone);
  torch::Tensor forward(const torch::Tensor& input, const StepContext& context) override;
  void initialize(const RandomKey& key) override;

 private:
  Activation activation_;
  torch::Tensor weight_, bias_;
};

/// [n, ...] to [n, product of the rest].
class Flatten final : public Layer {
 public:
  torch::Tensor forward(const torch::Tensor& input, const StepContext& context) override;
};

}  // namespace yoke::model
