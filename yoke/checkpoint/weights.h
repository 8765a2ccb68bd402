#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "yoke/tensor/named_hash.h"

namespace yoke::checkpoint {

/// Tensors by name, with the memory that they lie in: parameters and buffers as a state_dict has
/// them, without optimizer. Moves keep the views valid; there are no copies.
class Weights {
 public:
  Weights() = default;
  Weights(Weights&&) = default;
  Weights& operator=(Weights&&) = default;
  Weights(const Weights&) = delete;
  Weights& operator=(const Weights&) = delete;

  /// A new tensor, zero; returns its bytes, to be filled. Throws CheckpointError if the name is
  /// taken, or the shape is impossible.
  std::span<std::byte> add(const std::string& name, DType dtype, std::vector<std::int64_t> shape);

  const tensor::NamedTensors& tensors() const { return tensors_; }
  std::map<std::string, std::string> metadata;  ///< what the file said of itself

 private:
  std::map<std::string, std::vector<std::byte>> memory_;
  tensor::NamedTensors tensors_;
};

/// Reads a .safetensors file, or a .pt file that Python wrote with torch.save(model.state_dict()).
/// Which of them it is, the file's first bytes say. Everything in it is checked against the file's
/// size; no code in it is run. Throws CheckpointError that names the file and what to do, IoError.
Weights load_weights(const std::filesystem::path& path);

/// Where the tensor of a model lies.
struct Place {
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;
  std::span<std::byte> bytes;
};

/// Copies weights into a model, all or nothing: names, dtypes and shapes must be those of `model`.
/// Throws CheckpointError that lists what is missing, unexpected, or of another shape or dtype.
void copy_weights(const Weights& weights, const std::map<std::string, Place>& model,
                  const std::string& source);

}  // namespace yoke::checkpoint
