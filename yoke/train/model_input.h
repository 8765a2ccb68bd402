#pragma once

#include <torch/types.h>

#include "yoke/model/layer_list.h"

namespace yoke::train {

/// Numbers in the dtype of the model's parameters; token ids as they are.
torch::Tensor model_input(model::LayerList& model, const torch::Tensor& input);

}  // namespace yoke::train
