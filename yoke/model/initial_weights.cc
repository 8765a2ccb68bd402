#include "yoke/model/initial_weights.h"

#include <torch/torch.h>

#include <algorithm>
#include <vector>

namespace yoke::model {
namespace {

/// Draws are in double, whatever type the parameter has.
void assign(at::Tensor& parameter, std::vector<double>& values) {
  torch::NoGradGuard no_grad;
  parameter.copy_(at::from_blob(values.data(), parameter.sizes(), at::kDouble));
}

}  // namespace

void fill_uniform(at::Tensor& parameter, const RandomKey& key, double bound) {
  std::vector<float> drawn(static_cast<std::size_t>(parameter.numel()));
  key.uniform(drawn);
  std::vector<double> values(drawn.size());
  std::transform(drawn.begin(), drawn.end(), values.begin(),
                 [bound](float part) { return (2.0 * part - 1.0) * bound; });
  assign(parameter, values);
}

void fill_normal(at::Tensor& parameter, const RandomKey& key, double deviation) {
  std::vector<double> values(static_cast<std::size_t>(parameter.numel()));
  key.normal(std::span<double>(values));
  for (double& value : values) value *= deviation;
  assign(parameter, values);
}

}  // namespace yoke::model
