#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "yoke/base/dtype.h"

namespace yoke::tensor {

/// One logical tensor, wherever its bytes lie: contiguous, little-endian, without padding.
struct NamedBytes {
  DType dtype = DType::kFloat32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Tensors by name, sorted: the order of every hash and every checkpoint.
using NamedTensors = std::map<std::string, NamedBytes>;

/// SHA-256 over `name \0 dtype \0 shape \0 bytes` of each tensor; dtype "float32", shape "2,3",
/// empty for a scalar.
std::string sha256_of(const NamedTensors& tensors);

}  // namespace yoke::tensor
