#include "yoke/model/convolution.h"

#include <torch/torch.h>

#include <cmath>

#include "yoke/model/initial_weights.h"

namespace yoke::model {

Conv2d::Conv2d(std::int64_t in, std::int64_t out)
    : weight_(register_parameter("weight", torch::zeros({out, in, 3, 3}))) {}

torch::Tensor Conv2d::forward(const torch::Tensor& input, const StepContext&) {
  return torch::conv2d(input, weight_, {}, /*stride=*/1, /*padding=*/1);
}

void Conv2d::initialize(const RandomKey& key) {
  auto fan_in = static_cast<double>(weight_.numel() / weight_.size(0));
  fill_uniform(weight_, key.with("weight"), 1.0 / std::sqrt(fan_in));
}

BatchNorm2d::BatchNorm2d(std::int64_t channels)
    : weight_(register_parameter("weight", torch::ones({channels}))),
      bias_(register_parameter("bias", torch::zeros({channels}))),
      running_mean_(register_buffer("running_mean", torch::zeros({channels}))),
      running_var_(register_buffer("running_var", torch::ones({channels}))),
      num_batches_tracked_(register_buffer("num_batches_tracked", torch::zeros({}, torch::kLong))) {
}

torch::Tensor BatchNorm2d::forward(const torch::Tensor& input, const StepContext& context) {
  if (context.training) num_batches_tracked_.add_(1);
  auto output =
      torch::batch_norm(input, weight_, bias_, running_mean_, running_var_, context.training,
                        /*momentum=*/0.1, /*eps=*/1e-5, /*cudnn_enabled=*/false);
  return output.relu_();
}

void BatchNorm2d::initialize(const RandomKey&) {
  torch::NoGradGuard no_grad;
  weight_.fill_(1.0);
  bias_.zero_();
  running_mean_.zero_();
  running_var_.fill_(1.0);
  num_batches_tracked_.zero_();
}

torch::Tensor MaxPool2d::forward(const torch::Tensor& input, const StepContext&) {
  return torch::max_pool2d(input, 2);
}

}  // namespace yoke::model
