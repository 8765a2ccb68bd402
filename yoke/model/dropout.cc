#include "yoke/model/dropout.h"

#include <torch/torch.h>

#include "yoke/base/error.h"

namespace yoke::model {

torch::Tensor dropout(const torch::Tensor& input, double p, const RandomKey& key) {
  auto mask = torch::empty(input.sizes(), torch::kFloat32);
  std::span<float> elements(mask.mutable_data_ptr<float>(), static_cast<std::size_t>(mask.numel()));
  auto rate = static_cast<float>(p);
  if (input.scalar_type() == torch::kFloat32) {
    key.dropout_mask(elements, rate, static_cast<float>(1.0 / (1.0 - p)));
    return input * mask;
  }
  // The factor would be rounded to float32 in the mask.
  key.dropout_mask(elements, rate, 1.0f);
  return input * (mask.to(input.scalar_type()) / (1.0 - p));
}

Dropout::Dropout(double p) : p_(p) {
  YOKE_ENSURE(p >= 0.0 && p < 1.0, "dropout of ", p, ".");
}

torch::Tensor Dropout::forward(const torch::Tensor& input, const StepContext& context) {
  if (!context.training || p_ == 0.0) return input;
  return dropout(input, p_, context.key.with(path()));
}

}  // namespace yoke::model
