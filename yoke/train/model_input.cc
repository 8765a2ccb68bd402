#include "yoke/train/model_input.h"

#include <torch/torch.h>

namespace yoke::train {

torch::Tensor model_input(model::LayerList& model, const torch::Tensor& input) {
  if (!input.is_floating_point()) return input;
  for (const auto& parameter : model.parameters()) {
    if (parameter.is_floating_point()) return input.to(parameter.scalar_type());
  }
  return input;
}

}  // namespace yoke::train
