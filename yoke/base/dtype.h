#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace yoke {

/// Element types of tensors and payloads. The values travel in frames: never renumber.
enum class DType : std::uint8_t {
  kFloat64 = 0,
  kFloat32 = 1,
  kFloat16 = 2,
  kBFloat16 = 3,
  kInt8 = 4,
  kInt32 = 5,
  kInt64 = 6,
  kUInt8 = 7,
  kBool = 8,  ///< one byte, 0 or 1; buffers only, no arithmetic
};

/// Bytes of one element.
std::size_t size_of(DType dtype);

/// "float32", "bfloat16" ...: the names of files and messages.
std::string_view name_of(DType dtype);

/// The inverse of name_of. Throws ConfigError that lists the names there are.
DType dtype_from(std::string_view name);

}  // namespace yoke
