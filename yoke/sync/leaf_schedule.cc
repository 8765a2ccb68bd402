#include "yoke/sync/leaf_schedule.h"

#include <algorithm>

#include "yoke/base/error.h"

namespace yoke::sync {

LeafSchedule::LeafSchedule(const comm::BlockPlan& plan, int rank) {
  const auto [first, count] = plan.range_of(rank);
  const auto [first_block, blocks] = plan.blocks_of(rank);
  first_ = first;
  leaves_.resize(static_cast<std::size_t>(count));
  for (int b = 0; b < blocks; ++b) {
    const comm::Block& block = plan.blocks()[static_cast<std::size_t>(first_block + b)];
    YOKE_ENSURE(block.first() >= first && block.last() < first + count, "block of another rank");
    levels_ = std::max(levels_, block.level + 1);
    for (std::int64_t leaf = block.first(); leaf <= block.last(); ++leaf) {
      Leaf& mine = leaves_[static_cast<std::size_t>(leaf - first)];
      // The counter starts at the block's first leaf; trailing ones of the position are the
      // carries.
      std::int64_t position = leaf - block.first();
      while (position & 1) {
        ++mine.merges;
        position >>= 1;
      }
      if (leaf == block.last()) mine.block = b;
    }
  }
}

}  // namespace yoke::sync
