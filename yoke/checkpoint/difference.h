#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "yoke/checkpoint/reader.h"

namespace yoke::checkpoint {

/// How a tensor of two checkpoints differs.
struct Difference {
  std::string name;
  /// "values", "dtype", "shape", or "only in A", "only in B".
  std::string kind;
  std::uint64_t elements = 0;
  std::uint64_t differing = 0;  ///< elements of other bits; -0 and +0 are two
  /// Largest |a - b| of them; infinite where one of them is not finite.
  double largest = 0;
};

/// Tensors that are not the same bits, by name. Holds one tensor of each at a time.
std::vector<Difference> differences(const Reader& a, const Reader& b);

}  // namespace yoke::checkpoint
