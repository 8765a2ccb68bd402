#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "yoke/base/dtype.h"

namespace yoke::comm {

/// An aligned block of leaves, [index << level, (index + 1) << level), whose sum one rank holds.
struct Block {
  int level;
  std::int64_t index;
  int owner;
  std::int64_t first() const { return index << level; }
  std::int64_t last() const { return ((index + 1) << level) - 1; }
  bool operator==(const Block&) const = default;
};

/// The canonical sum of leaves 0 .. V-1, and which rank holds which part of it.
///
/// Canonical order (design, section 2.5): leaves are added as a binary counter carries: two neighbouring
/// blocks of equal, power-of-two size become one, left + right; what is left over at the end is added smallest
/// first. Each rank adds its own leaves into maximal aligned blocks; evaluating the blocks of all ranks by the
/// same rule gives the same bits for every placement.
class BlockPlan {
 public:
  /// `ranges[r]` = {first, count}: the contiguous leaves of rank r; together they cover 0 .. V-1 in rank order.
  /// Ranks may have none. Throws InternalError otherwise.
  explicit BlockPlan(std::vector<std::pair<std::int64_t, std::int64_t>> ranges);

  /// Leaves r*V/W (rounded down) to (r+1)*V/W - 1 for rank r: whole and as even as can be.
  static BlockPlan even(std::int64_t leaves, int ranks);

  std::int64_t leaves() const { return leaves_; }
  int ranks() const { return static_cast<int>(ranges_.size()); }
  std::pair<std::int64_t, std::int64_t> range_of(int rank) const { return ranges_[rank]; }
  /// All blocks in leaf order.
  std::span<const Block> blocks() const { return blocks_; }
  /// Positions in blocks() of those that `rank` holds: a contiguous run {first, count}.
  std::pair<int, int> blocks_of(int rank) const { return owned_[rank]; }
  /// The largest number of blocks that one rank holds.
  int most_blocks() const;

  /// Evaluates the tree: out[i] = canonical sum over blocks of operands[b][i], for `count` elements of float32
  /// or float64. `operands` are in the order of blocks(), none null; `out` may be one of them. Works through
  /// chunks that fit the first-level cache and writes `out` once.
  void evaluate(std::span<const std::byte* const> operands, std::byte* out, std::size_t count, DType dtype) const;

 private:
  std::int64_t leaves_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
  std::vector<Block> blocks_;
  std::vector<std::pair<int, int>> owned_;
  /// Pairs (left, right) of slots to add, in order; the result stays in left. Slot b is block b.
  std::vector<std::pair<int, int>> additions_;
};

}  // namespace yoke::comm
