#pragma once

#include <torch/torch.h>

#include <vector>

/// What a plain loop of libtorch needs to add gradients as yoke does: the oracles of law 2.
namespace yoke::test {

using Gradients = std::vector<torch::Tensor>;

/// The canonical sum, written once more, recursively: the largest power of two of leaves is the
/// left part.
inline Gradients tree(const std::vector<Gradients>& leaves, std::size_t first, std::size_t count) {
  if (count == 1) return leaves[first];
  std::size_t left = 1;
  while (left * 2 < count) left *= 2;
  const Gradients a = tree(leaves, first, left);
  const Gradients b = tree(leaves, first + left, count - left);
  Gradients sum;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum.push_back(!a[i].defined() ? b[i] : !b[i].defined() ? a[i] : a[i] + b[i]);
  }
  return sum;
}

}  // namespace yoke::test
