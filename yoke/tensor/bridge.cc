#include "yoke/tensor/bridge.h"

#include <torch/torch.h>

#include "yoke/base/error.h"

namespace yoke::tensor {

DType dtype_of(const at::Tensor& tensor, const std::string& what) {
  switch (tensor.scalar_type()) {
    case at::kDouble:
      return DType::kFloat64;
    case at::kFloat:
      return DType::kFloat32;
    case at::kHalf:
      return DType::kFloat16;
    case at::kBFloat16:
      return DType::kBFloat16;
    case at::kChar:
      return DType::kInt8;
    case at::kInt:
      return DType::kInt32;
    case at::kLong:
      return DType::kInt64;
    case at::kByte:
      return DType::kUInt8;
    case at::kBool:
      return DType::kBool;
    default:
      throw ConfigError(
          cat(what, " has dtype ", c10::toString(tensor.scalar_type()),
              ", which yoke does not carry. Convert it to float32, float64 or an integer type."));
  }
}

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return at::kDouble;
    case DType::kFloat32:
      return at::kFloat;
    case DType::kFloat16:
      return at::kHalf;
    case DType::kBFloat16:
      return at::kBFloat16;
    case DType::kInt8:
      return at::kChar;
    case DType::kInt32:
      return at::kInt;
    case DType::kInt64:
      return at::kLong;
    case DType::kUInt8:
      return at::kByte;
    case DType::kBool:
      return at::kBool;
  }
  throw InternalError("unknown dtype");
}

std::span<const std::byte> bytes_of(const at::Tensor& tensor) {
  YOKE_ENSURE(tensor.is_contiguous() && tensor.device().is_cpu(),
              "a tensor that is not contiguous CPU memory");
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

std::span<std::byte> mutable_bytes_of(at::Tensor& tensor) {
  YOKE_ENSURE(tensor.is_contiguous() && tensor.device().is_cpu(),
              "a tensor that is not contiguous CPU memory");
  return {static_cast<std::byte*>(tensor.mutable_data_ptr()), tensor.nbytes()};
}

at::Tensor view_of(std::byte* memory, DType dtype, const std::vector<std::int64_t>& shape) {
  return torch::from_blob(memory, shape, torch::TensorOptions().dtype(scalar_type(dtype)));
}

ArenaLayout::Entry entry_for(const std::string& name, const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || !tensor.device().is_cpu()) {
    throw ConfigError(cat(name, " is not a dense CPU tensor; yoke trains dense CPU tensors."));
  }
  ArenaLayout::Entry entry;
  entry.name = name;
  entry.shape = tensor.sizes().vec();
  entry.dtype = dtype_of(tensor, name);
  entry.elements = static_cast<std::size_t>(tensor.numel());
  return entry;
}

}  // namespace yoke::tensor
