#pragma once

#include "yoke/model/layer_list.h"

namespace yoke::model {

/// 3x3 convolution with a border of zeros, so that height and width stay; parameter "weight" [out,
/// in, 3, 3], no bias: a batch norm follows.
class Conv2d final : public Layer {
 public:
  Conv2d(std::int64_t in, std::int64_t out);
  torch::Tensor forward(const torch::Tensor& input, const StepContext& context) override;
  void initialize(const RandomKey& key) override;

 private:
  torch::Tensor weight_;
};

/// relu(batch norm) over [n, channels, h, w] (Ioffe and Szegedy, 2015), momentum 0.1 and epsilon
/// 1e-5 as torch's. Training uses the statistics of the micro-batch and moves the buffers
/// "running_mean", "running_var" and "num_batches_tracked"; evaluation uses the buffers.
class BatchNorm2d final : public Layer {
 public:
  explicit BatchNorm2d(std::int64_t channels);
  torch::Tensor forward(const torch::Tensor& input, const StepContext& context) override;
  void initialize(const RandomKey& key) override;

 private:
  torch::Tensor weight_, bias_, running_mean_, running_var_, num_batches_tracked_;
};

/// The largest of each 2x2 square; a last odd row or column is left out.
class MaxPool2d final : public Layer {
 public:
  torch::Tensor forward(const torch::Tensor& input, const StepContext& context) override;
};

}  // namespace yoke::model
