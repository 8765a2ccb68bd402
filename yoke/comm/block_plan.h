#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "yoke/base/dtype.h"
#include "yoke/comm/reduce_op.h"

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
/// Canonical order (design, section 2.5): leaves are added as a binary counter carries: two
/// neighbouring blocks of equal, power-of-two size become one, left + right; what is left over at
/// the end is added smallest first. Each rank adds its own leaves into maximal aligned blocks;
/// evaluating the blocks of all ranks by the same rule gives the same bits for every placement.
class BlockPlan {
 public:
  /// `ranges[r]` = {first, count}: the contiguous leaves of rank r; together they cover 0 .. V-1 in
  /// rank order. Ranks may have none. Throws InternalError otherwise.
  explicit BlockPlan(std::vector<std::pair<std::int64_t, std::int64_t>> ranges);

  /// Blocks in any order, from any placement; together they cover 0 .. V-1, each leaf once. Two
  /// neighbours of one owner that make an aligned block become that block, so that blocks which
  /// happen to be contiguous in rank order give the plan of their ranges. Throws InternalError
  /// otherwise.
  static BlockPlan of_blocks(std::vector<Block> blocks, int ranks);
  /// The same, but every block stays what it is: its owner has kept its sum apart.
  static BlockPlan of_separate_blocks(std::vector<Block> blocks, int ranks);

  /// Leaves r*V/W (rounded down) to (r+1)*V/W - 1 for rank r: whole and as even as can be.
  static BlockPlan even(std::int64_t leaves, int ranks);

  std::int64_t leaves() const { return leaves_; }
  int ranks() const { return static_cast<int>(first_position_.size()) - 1; }
  /// All blocks in leaf order.
  std::span<const Block> blocks() const { return blocks_; }
  /// Positions in blocks() of those that `rank` holds, in leaf order.
  std::span<const int> positions_of(int rank) const {
    return std::span(positions_).subspan(first_position_[rank], held_by(rank));
  }
  /// Which of its owner's blocks, counted from 0, the one at `position` is.
  int place_at_owner(int position) const { return place_at_owner_[position]; }
  int held_by(int rank) const { return first_position_[rank + 1] - first_position_[rank]; }
  /// Whether each rank holds one range of leaves, in rank order. Then only (InternalError):
  bool contiguous() const { return !ranges_.empty(); }
  std::pair<std::int64_t, std::int64_t> range_of(int rank) const;  ///< {first, count}
  std::pair<int, int> blocks_of(int rank) const;  ///< positions_of as {first, count}
  /// The largest number of blocks that one rank holds.
  int most_blocks() const { return most_blocks_; }
  /// Equal for equal plans; for comparing plans between ranks.
  std::uint64_t fingerprint() const { return fingerprint_; }

  /// Pairs (left, right) of positions in blocks(), in the order in which they are combined: left =
  /// left + right. The last result stays in block 0.
  std::span<const std::pair<int, int>> additions() const { return additions_; }

  /// Evaluates the tree: out[i] = canonical sum over blocks of operands[b][i], for `count` elements
  /// of float32 or float64. `operands` are in the order of blocks(), none null, at least one; `out`
  /// may be one of them, and may overlap none otherwise. Works through chunks that fit the
  /// first-level cache and writes `out` once; 1, 2 and 4 blocks (in pairs) are single passes.
  /// Thread-safe.
  void evaluate(std::span<const std::byte* const> operands, std::byte* out, std::size_t count,
                DType dtype) const;

  /// The same for every dtype and operation that comm/kernels.h knows; kMean only sums.
  void fold(std::span<const std::byte* const> operands, std::byte* out, std::size_t count,
            DType dtype, ReduceOp op) const;

 private:
  /// One combination of a chunk. Values >= 0 are operands, below that ~scratch; `to` is a scratch,
  /// or kOut.
  struct Step {
    int left, right, to;
  };
  static constexpr int kOut = -1;

  BlockPlan() = default;
  static BlockPlan gathered(std::vector<Block> blocks, int ranks, bool joined);
  void finish(int ranks);
  void compile();

  std::int64_t leaves_ = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;  ///< empty: not contiguous
  std::vector<Block> blocks_;
  std::vector<int> positions_;       ///< of the blocks, by owner
  std::vector<int> first_position_;  ///< positions_ of rank r begin here; one more at the end
  std::vector<int> place_at_owner_;
  std::vector<std::pair<int, int>> additions_;
  std::vector<Step> steps_;
  int scratches_ = 0;
  int most_blocks_ = 0;
  std::uint64_t fingerprint_ = 0;
  bool two_pairs_ = false;  ///< (0 + 1) + (2 + 3)
};

}  // namespace yoke::comm
