#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "yoke/base/dtype.h"
#include "yoke/comm/half.h"

/// Data for collectives, and what they must make of it, computed by one thread without yoke's plans
/// and kernels.
namespace yoke::test {

/// A 64-bit mix of three numbers (the finalizer of MurmurHash3).
inline std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c = 0) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15 + b * 0xc2b2ae3d27d4eb4f + c + 1;
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

struct BFloat16 {
  std::uint16_t bits;
  bool operator==(const BFloat16&) const = default;
};
struct Float16 {
  std::uint16_t bits;
  bool operator==(const Float16&) const = default;
};

template <typename T>
struct Element;
template <>
struct Element<double> {
  static constexpr DType dtype = DType::kFloat64;
};
template <>
struct Element<float> {
  static constexpr DType dtype = DType::kFloat32;
};
template <>
struct Element<Float16> {
  static constexpr DType dtype = DType::kFloat16;
};
template <>
struct Element<BFloat16> {
  static constexpr DType dtype = DType::kBFloat16;
};
template <>
struct Element<std::int8_t> {
  static constexpr DType dtype = DType::kInt8;
};
template <>
struct Element<std::int32_t> {
  static constexpr DType dtype = DType::kInt32;
};
template <>
struct Element<std::int64_t> {
  static constexpr DType dtype = DType::kInt64;
};
template <>
struct Element<std::uint8_t> {
  static constexpr DType dtype = DType::kUInt8;
};

/// Floats of very different size, so that another order of addition gives other bits; any integer.
template <typename T>
T element(std::uint64_t rank, std::uint64_t i, std::uint64_t seed = 0) {
  const std::uint64_t random = mix(rank, i, seed);
  const double value = std::ldexp(static_cast<double>(random % 4001) - 2000.0,
                                  static_cast<int>(random >> 32 & 15) - 8);
  if constexpr (std::is_same_v<T, BFloat16>) {
    return {comm::bfloat16_from_float(static_cast<float>(value))};
  } else if constexpr (std::is_same_v<T, Float16>) {
    return {comm::float16_from_float(static_cast<float>(value))};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random >> 8);
  } else {
    return static_cast<T>(value);
  }
}

template <typename T>
std::vector<T> elements(std::uint64_t rank, std::size_t count, std::uint64_t seed = 0) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = element<T>(rank, i, seed);
  return values;
}

template <typename T>
double value_of(T value) {
  if constexpr (std::is_same_v<T, BFloat16>)
    return comm::float_from_bfloat16(value.bits);
  else if constexpr (std::is_same_v<T, Float16>)
    return comm::float_from_float16(value.bits);
  else
    return static_cast<double>(value);
}

template <typename T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return {comm::bfloat16_from_float(comm::float_from_bfloat16(a.bits) +
                                      comm::float_from_bfloat16(b.bits))};
  } else if constexpr (std::is_same_v<T, Float16>) {
    return {comm::float16_from_float(comm::float_from_float16(a.bits) +
                                     comm::float_from_float16(b.bits))};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}

/// The canonical sum of one element over leaves 0 .. leaves - 1, as a binary counter carries: place
/// k holds the sum of 2^k leaves or nothing.
template <typename T, typename Leaf>
T counter_sum(std::int64_t leaves, const Leaf& leaf) {
  std::vector<std::pair<bool, T>> places(64, {false, T{}});
  for (std::int64_t v = 0; v < leaves; ++v) {
    T carry = leaf(v);
    std::size_t k = 0;
    for (; places[k].first; ++k) {
      carry = plus(places[k].second, carry);
      places[k].first = false;
    }
    places[k] = {true, carry};
  }
  bool some = false;
  T total{};
  for (const auto& [held, sum] : places) {
    if (!held) continue;
    total = some ? plus(sum, total) : sum;
    some = true;
  }
  return total;
}

template <typename T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}
template <typename T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

template <typename T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace yoke::test
