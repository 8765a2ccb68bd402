#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "yoke/tensor/arena_layout.h"

namespace yoke::sync {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// The tensors of a module, by what happens to them in a step. The order is that of the module.
struct ModelTensors {
  std::vector<NamedTensor> trainable;  ///< parameters with gradients: float32 or float64
  std::vector<NamedTensor> frozen;     ///< parameters without
  std::vector<NamedTensor> averaged;   ///< float buffers: averaged over micro-batches when changed
  std::vector<NamedTensor> agreed;     ///< integer buffers: must agree
  DType widest = DType::kFloat32;      ///< of those that lie in arenas

  /// Throws ConfigError that names the tensor: dtype or layout that yoke does not carry, undefined,
  /// no parameter that trains, one tensor under two names.
  explicit ModelTensors(torch::nn::Module& module);

  /// Trainable parameters, then averaged buffers ("buffers/" before their names): what is added
  /// over ranks.
  tensor::ArenaLayout gradient_layout() const;
  /// Trainable parameters, at the same offsets, then frozen ones: what the state arena holds.
  tensor::ArenaLayout state_layout() const;
};

}  // namespace yoke::sync
