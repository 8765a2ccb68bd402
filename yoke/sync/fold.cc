#include "yoke/sync/fold.h"

#include <algorithm>
#include <cstring>

#include "yoke/base/error.h"
#include "yoke/base/vector_clones.h"

namespace yoke::sync {

namespace {

/// Elements of one turn: operands and result stay in the first-level cache.
constexpr std::size_t kTurn = 1024;

YOKE_VECTOR_CLONES void add(const float* left, const float* right, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = left[i] + right[i];
}

YOKE_VECTOR_CLONES void add(const double* left, const double* right, double* out,
                            std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = left[i] + right[i];
}

YOKE_VECTOR_CLONES void divide_all(float* values, std::size_t count, float by) {
  for (std::size_t i = 0; i < count; ++i) values[i] = values[i] / by;
}

YOKE_VECTOR_CLONES void divide_all(double* values, std::size_t count, double by) {
  for (std::size_t i = 0; i < count; ++i) values[i] = values[i] / by;
}

YOKE_VECTOR_CLONES void multiply_all(const float* values, float by, float* out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = values[i] * by;
}

YOKE_VECTOR_CLONES void multiply_all(const double* values, double by, double* out,
                                     std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = values[i] * by;
}

template <typename T>
void fold_as(std::span<const std::byte* const> operands, std::byte* out, std::size_t count) {
  auto at = [&](std::size_t n) { return reinterpret_cast<const T*>(operands[n]); };
  T* result = reinterpret_cast<T*>(out);
  if (operands.size() == 1) {
    if (at(0) != result) std::memcpy(result, at(0), count * sizeof(T));
    return;
  }
  for (std::size_t first = 0; first < count; first += kTurn) {
    const std::size_t turn = std::min(kTurn, count - first);
    add(at(1) + first, at(0) + first, result + first, turn);
    for (std::size_t n = 2; n < operands.size(); ++n)
      add(at(n) + first, result + first, result + first, turn);
  }
}

}  // namespace

void fold(std::span<const std::byte* const> operands, std::byte* out, std::size_t count,
          DType dtype) {
  if (dtype == DType::kFloat64) return fold_as<double>(operands, out, count);
  YOKE_ENSURE(dtype == DType::kFloat32, name_of(dtype));
  fold_as<float>(operands, out, count);
}

void fill_absent(std::byte* out, std::size_t count, DType dtype) {
  if (dtype == DType::kFloat64) {
    std::fill_n(reinterpret_cast<double*>(out), count, -0.0);
  } else {
    std::fill_n(reinterpret_cast<float*>(out), count, -0.0F);
  }
}

void multiply(const std::byte* values, double factor, std::byte* out, std::size_t count,
              DType dtype) {
  if (dtype == DType::kFloat64) {
    return multiply_all(reinterpret_cast<const double*>(values), factor,
                        reinterpret_cast<double*>(out), count);
  }
  YOKE_ENSURE(dtype == DType::kFloat32, name_of(dtype));
  multiply_all(reinterpret_cast<const float*>(values), static_cast<float>(factor),
               reinterpret_cast<float*>(out), count);
}

void divide(std::byte* values, std::size_t count, double divisor, DType dtype) {
  if (dtype == DType::kFloat64)
    return divide_all(reinterpret_cast<double*>(values), count, divisor);
  YOKE_ENSURE(dtype == DType::kFloat32, name_of(dtype));
  divide_all(reinterpret_cast<float*>(values), count, static_cast<float>(divisor));
}

}  // namespace yoke::sync
