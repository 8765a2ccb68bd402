#include "yoke/sync/leaf_schedule.h"

#include <bit>

namespace yoke::sync {

LeafSchedule::LeafSchedule(const comm::BlockPlan& plan, int rank) {
  int place = 0;
  for (const int position : plan.positions_of(rank))
    append(plan.blocks()[static_cast<std::size_t>(position)], place++);
}

void LeafSchedule::append(const comm::Block& block, int place) {
  for (std::int64_t leaf = block.first(); leaf <= block.last(); ++leaf) {
    // The counter starts at the block's first leaf; trailing ones of the position are the carries.
    const auto position = static_cast<std::uint64_t>(leaf - block.first());
    leaves_.push_back({.leaf = leaf,
                       .merges = std::countr_one(position),
                       .block = leaf == block.last() ? place : Leaf::kWaits});
  }
}

}  // namespace yoke::sync
