#include "yoke/model/loss.h"

#include <torch/torch.h>

namespace yoke::model {

at::Tensor cross_entropy(const at::Tensor& output, const at::Tensor& target) {
  return at::cross_entropy_loss(output.reshape({-1, output.size(-1)}), target.reshape({-1}));
}

std::int64_t correct(const at::Tensor& output, const at::Tensor& target) {
  torch::NoGradGuard no_grad;
  return output.argmax(-1).eq(target).sum().item<std::int64_t>();
}

}  // namespace yoke::model
