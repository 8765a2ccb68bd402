#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace yoke::test {

template <typename T>
using Gradient = std::optional<std::vector<T>>;  ///< empty: absent

template <typename T>
Gradient<T> plus(const Gradient<T>& left, const Gradient<T>& right) {
  if (!left || !right) return left ? left : right;
  std::vector<T> sum = *left;
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += (*right)[i];
  return sum;
}

/// Design, section 2.5, said once more and otherwise: the largest power of two that fits is a
/// perfect tree; what is left is added among itself first.
template <typename T>
Gradient<T> canonical_sum(std::span<const Gradient<T>> leaves) {
  if (leaves.size() == 1) return leaves[0];
  const std::size_t floor = std::bit_floor(leaves.size());
  const std::size_t half = floor == leaves.size() ? floor / 2 : floor;
  return plus(canonical_sum(leaves.first(half)), canonical_sum(leaves.subspan(half)));
}

/// The gradients of micro-batches, `leaf` of them accumulated in order, and the leaves summed.
template <typename T>
Gradient<T> canonical_sum(const std::vector<Gradient<T>>& micro_batches, std::size_t leaf) {
  std::vector<Gradient<T>> leaves((micro_batches.size() + leaf - 1) / leaf);
  for (std::size_t v = 0; v < micro_batches.size(); ++v)
    leaves[v / leaf] = plus(leaves[v / leaf], micro_batches[v]);
  return canonical_sum<T>(std::span<const Gradient<T>>(leaves));
}

template <typename T>
bool same_bits(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

}  // namespace yoke::test
