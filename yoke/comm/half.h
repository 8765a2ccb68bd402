#pragma once

#include <bit>
#include <cstdint>

namespace yoke::comm {

/// IEEE 754 binary16 and bfloat16 as bits, to and from float32. From float32: rounded once, to
/// nearest, ties to even; NaN stays NaN (quiet), too large becomes infinity, subnormals are kept.
/// Free of branches, so that loops over them vectorise, and free of library types, so that the bits
/// do not depend on the compiler's.

inline float float_from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t bfloat16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const std::uint32_t quiet = bits >> 16 | 0x40;
  return static_cast<std::uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

inline float float_from_float16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t magnitude = bits & 0x7fff;
  const std::uint32_t exponent = magnitude >> 10;
  // The exponents' biases differ by 112; those of infinity and NaN by 224.
  const std::uint32_t normal = (magnitude << 13) + ((exponent == 31 ? 224u : 112u) << 23);
  const auto subnormal = std::bit_cast<std::uint32_t>(
      static_cast<float>(static_cast<std::int32_t>(magnitude)) * 0x1p-24f);
  return std::bit_cast<float>(sign | (exponent == 0 ? subnormal : normal));
}

inline std::uint16_t float16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16 & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t normal = (magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  // Below 2^-14 the unit is 2^-24, which is the last bit of 0.5: adding 0.5 rounds to it.
  const std::uint32_t subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) -
      std::bit_cast<std::uint32_t>(0.5f);
  std::uint32_t half = magnitude < 0x38800000 ? subnormal : normal;
  half = magnitude >= 0x47800000 ? 0x7c00u : half;
  half = magnitude > 0x7f800000 ? 0x7e00u | (magnitude >> 13 & 0x3ff) : half;
  return static_cast<std::uint16_t>(sign | half);
}

}  // namespace yoke::comm
