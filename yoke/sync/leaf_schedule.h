#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "yoke/comm/block_plan.h"

namespace yoke::sync {

/// What one rank does with the gradient of each of its leaves: how many waiting partial sums it
/// completes, and where the result goes. The same for every parameter.
class LeafSchedule {
 public:
  struct Leaf {
    /// The sum waits for its neighbour, at level `merges`.
    static constexpr int kWaits = -1;
    /// The gradient is looked at, and nothing else (a leaf that is computed once more).
    static constexpr int kNowhere = -2;

    std::int64_t leaf = 0;
    int merges = 0;      ///< waiting sums of levels 0 .. merges-1 are added, in that order
    int block = kWaits;  ///< the result is this one of the rank's blocks
  };

  LeafSchedule() = default;
  /// All blocks that `rank` holds, in leaf order.
  LeafSchedule(const comm::BlockPlan& plan, int rank);

  /// One more block, whose sum is the rank's block `place`.
  void append(const comm::Block& block, int place);
  /// A leaf that is computed once more, for comparison.
  void append_check(std::int64_t leaf) {
    leaves_.push_back({.leaf = leaf, .merges = 0, .block = Leaf::kNowhere});
  }

  /// In the order in which they are computed.
  std::span<const Leaf> leaves() const { return leaves_; }

 private:
  std::vector<Leaf> leaves_;
};

}  // namespace yoke::sync
