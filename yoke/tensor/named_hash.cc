#include "yoke/tensor/named_hash.h"

#include "yoke/base/hash.h"

namespace yoke::tensor {

std::string sha256_of(const NamedTensors& tensors) {
  Sha256 sha;
  const std::string_view zero("\0", 1);
  for (const auto& [name, tensor] : tensors) {
    std::string shape;
    for (std::size_t i = 0; i < tensor.shape.size(); ++i)
      shape += (i ? "," : "") + std::to_string(tensor.shape[i]);
    sha.update(name)
        .update(zero)
        .update(name_of(tensor.dtype))
        .update(zero)
        .update(shape)
        .update(zero);
    sha.update(tensor.bytes);
  }
  return sha.hex();
}

}  // namespace yoke::tensor
