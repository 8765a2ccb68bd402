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

/// A second or later place of a parameter in a layer list (tied weights). The first place is the
/// parameter itself.
struct TiedUse {
  std::size_t parameter = 0;  ///< of ModelTensors::trainable
  std::size_t entry = 0;      ///< of LayerList::layers()
};

/// The tensors of a module, by what happens to them in a step. The order is that of the module.
struct ModelTensors {
  std::vector<NamedTensor> trainable;  ///< parameters with gradients: float32 or float64
  std::vector<NamedTensor> frozen;     ///< parameters without
  std::vector<NamedTensor> averaged;   ///< float buffers: averaged over micro-batches when changed
  std::vector<NamedTensor> agreed;     ///< integer buffers: must agree
  std::vector<TiedUse> tied;           ///< of a layer list: other modules are lists of one
  DType widest = DType::kFloat32;      ///< of those that lie in arenas

  /// Throws ConfigError that names the tensor: dtype or layout that yoke does not carry, undefined,
  /// no parameter that trains, a buffer under two names. A parameter under two names has the first.
  explicit ModelTensors(torch::nn::Module& module);

  /// Trainable parameters, then averaged buffers ("buffers/" before their names), then tied uses:
  /// what is added over ranks.
  tensor::ArenaLayout gradient_layout() const;
  /// Where the tied uses begin in it.
  std::size_t first_tied() const { return trainable.size() + averaged.size(); }
  /// Trainable parameters, at the same offsets, then frozen ones: what the state arena holds.
  tensor::ArenaLayout state_layout() const;
};

}  // namespace yoke::sync
