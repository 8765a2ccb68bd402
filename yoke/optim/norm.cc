#include "yoke/optim/norm.h"

#include <array>
#include <bit>
#include <cstdint>

#include "yoke/base/error.h"
#include "yoke/base/vector_clones.h"

namespace yoke::optim {
namespace {

constexpr std::size_t kLanes = 16;

template <typename T>
YOKE_LOOP double squares_of_block(const T* values, std::size_t count) {
  double lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; i + lane < count; ++lane) {
    double value = values[i + lane];
    lanes[lane] += value * value;
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

template <typename T>
YOKE_LOOP void squares_of_blocks(const T* values, std::size_t count, double* out) {
  for (std::size_t first = 0; first < count; first += kBlockElements) {
    std::size_t left = count - first;
    *out++ = squares_of_block(values + first, left < kBlockElements ? left : kBlockElements);
  }
}

YOKE_VECTOR_CLONES void squares_float(const float* values, std::size_t count, double* out) {
  squares_of_blocks(values, count, out);
}

YOKE_VECTOR_CLONES void squares_double(const double* values, std::size_t count, double* out) {
  squares_of_blocks(values, count, out);
}

void check_blocks(std::size_t elements, std::size_t blocks) {
  YOKE_ENSURE_EQ(blocks, (elements + kBlockElements - 1) / kBlockElements,
                 "One sum belongs to each block of ", elements, " elements.");
}

}  // namespace

void block_squares(std::span<const float> values, std::span<double> out) {
  check_blocks(values.size(), out.size());
  squares_float(values.data(), values.size(), out.data());
}

void block_squares(std::span<const double> values, std::span<double> out) {
  check_blocks(values.size(), out.size());
  squares_double(values.data(), values.size(), out.data());
}

double tree_sum(std::span<const double> values) {
  // Place k of the counter holds the sum of 2^k neighbours while bit k of `added` is set.
  std::array<double, 64> places;
  std::uint64_t added = 0;
  for (double value : values) {
    double carry = value;
    int place = 0;
    for (; (added >> place) & 1; ++place) carry = places[place] + carry;
    places[place] = carry;
    ++added;
  }
  if (added == 0) return 0.0;
  int place = std::countr_zero(added);
  double sum = places[place];
  while (++place < static_cast<int>(std::bit_width(added))) {
    if ((added >> place) & 1) sum = places[place] + sum;
  }
  return sum;
}

double clip_scale(double norm, double max_norm) {
  YOKE_ENSURE(max_norm >= 0.0, "max_norm ", max_norm, "; 0 means no clipping.");
  if (max_norm == 0.0) return 1.0;
  double factor = max_norm / (norm + 1e-6);
  return factor > 1.0 ? 1.0 : factor;
}

}  // namespace yoke::optim
