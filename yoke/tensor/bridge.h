#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "yoke/base/dtype.h"
#include "yoke/tensor/arena_layout.h"

namespace yoke::tensor {

/// The dtype of a tensor. Throws ConfigError that names `what` for those that yoke does not carry.
DType dtype_of(const at::Tensor& tensor, const std::string& what);
at::ScalarType scalar_type(DType dtype);

/// The memory of a contiguous CPU tensor.
std::span<const std::byte> bytes_of(const at::Tensor& tensor);
std::span<std::byte> mutable_bytes_of(at::Tensor& tensor);

/// A tensor whose elements lie at `memory`, which must outlive it.
at::Tensor view_of(std::byte* memory, DType dtype, const std::vector<std::int64_t>& shape);

/// The layout entry of a tensor (offset unset).
ArenaLayout::Entry entry_for(const std::string& name, const at::Tensor& tensor);

}  // namespace yoke::tensor
