#include "yoke/model/linear.h"

#include <torch/torch.h>

#include <cmath>

#include "yoke/model/initial_weights.h"

namespace yoke::model {

Linear::Linear(std::int64_t in, std::int64_t out, Activation activation)
    : activation_(activation),
      weight_(register_parameter("weight", torch::zeros({out, in}))),
      bias_(register_parameter("bias", torch::zeros({out}))) {}

torch::Tensor Linear::forward(const torch::Tensor& input, const StepContext&) {
  auto output = torch::linear(input, weight_, bias_);
  return activation_ == Activation::kRelu ? output.relu_() : output;
}

void Linear::initialize(const RandomKey& key) {
  double bound = 1.0 / std::sqrt(static_cast<double>(weight_.size(1)));
  fill_uniform(weight_, key.with("weight"), bound);
  fill_uniform(bias_, key.with("bias"), bound);
}

torch::Tensor Flatten::forward(const torch::Tensor& input, const StepContext&) {
  return input.flatten(1);
}

}  // namespace yoke::model
