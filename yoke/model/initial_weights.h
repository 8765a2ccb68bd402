#pragma once

#include <ATen/core/Tensor.h>

#include "yoke/base/random.h"

namespace yoke::model {

/// Draw initial weights; element i depends on the key and on i alone, and nothing on libtorch's
/// process generator. A layer's key is made of the seed and the layer's name, and with the
/// parameter's name becomes the parameter's: so the weights are the same for any number of ranks,
/// and for any other parameter that comes or goes.
///
/// Linear and convolution: uniform with the bound 1/sqrt(fan_in), weights and biases, which is
/// torch's default (Kaiming-uniform with a = sqrt(5)). Embeddings and gpt's linears: normal with
/// the deviation given.
void fill_uniform(at::Tensor& parameter, const RandomKey& key, double bound);
void fill_normal(at::Tensor& parameter, const RandomKey& key, double deviation);

}  // namespace yoke::model
