#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "yoke/base/hash.h"

namespace yoke::sync {

/// A hash of all that a leaf's computation gives (its gradients, buffers and losses), for comparing
/// two computations of one leaf bit by bit. The order in which the parts come does not matter.
class LeafHash {
 public:
  /// `part` tells parts apart; the same part may come once.
  void add(std::uint64_t part, std::span<const std::byte> bytes) { sum_ += xxh3(bytes, part + 1); }
  std::uint64_t value() const { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

}  // namespace yoke::sync
